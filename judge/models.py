"""Seasons, rounds, questions, answers and scores, with the rules that the database enforces.

A round moves SCHEDULED -> OPEN -> SCORING -> CLOSED, or to VOID from anywhere; `services` moves
it by conditional UPDATEs, so two workers can never both do so.
"""

import secrets
import uuid

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, Q

from swarm_web.nodes.models import Node

SECRET_BYTES = 32


def draw_seed() -> int:
    """Return a season's public seed."""
    return secrets.randbelow(2**31)


def draw_secret() -> bytes:
    """Return the key from which a round's question indices are drawn."""
    return secrets.token_bytes(SECRET_BYTES)


class Season(models.Model):
    """A stretch of rounds with one task mix and one set of rules; at most one is running."""

    class State(models.TextChoices):
        """A season is drafted, runs, and ends."""

        DRAFT = "draft"
        RUNNING = "running"
        ENDED = "ended"

    name = models.CharField(max_length=80, unique=True)
    state = models.CharField(max_length=16, choices=State, default=State.DRAFT)
    paused = models.BooleanField(
        default=False, help_text="A paused season opens no new rounds; an open one is finished."
    )
    tasks = models.JSONField(
        help_text='The task mix: [{"dataset": "gcd", "config": {"max_value": 20}, "weight": 1}, …]'
    )
    seed = models.BigIntegerField(
        default=draw_seed,
        editable=False,
        help_text="The seed of every task of the season; indices tell the tasks apart.",
    )
    generator = models.CharField(max_length=80, editable=False)
    completions = models.PositiveSmallIntegerField(
        default=8,
        validators=[MinValueValidator(2), MaxValueValidator(64)],
        help_text="L: completions in a rollout.",
    )
    local = models.PositiveSmallIntegerField(
        default=4,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text="I: own rollouts in a training set.",
    )
    external = models.PositiveSmallIntegerField(
        default=4,
        validators=[MaxValueValidator(64)],
        help_text="J: rollouts of others in a training set.",
    )
    questions_per_round = models.PositiveSmallIntegerField(
        default=16, validators=[MinValueValidator(1), MaxValueValidator(256)]
    )
    cadence_seconds = models.PositiveIntegerField(
        default=300,
        validators=[MaxValueValidator(86_400 * 7)],
        help_text="From one opening to the next; 0 means that rounds are made by hand.",
    )
    open_seconds = models.PositiveIntegerField(
        default=120, validators=[MinValueValidator(5), MaxValueValidator(86_400)]
    )
    scoring_seconds = models.PositiveIntegerField(
        default=60, validators=[MinValueValidator(5), MaxValueValidator(3_600)]
    )
    max_new_tokens = models.PositiveIntegerField(
        default=256,
        validators=[MinValueValidator(1), MaxValueValidator(8_192)],
        help_text="The judge's limit on an answer's length, in tokens of the node's own tokenizer.",
    )
    temperature = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
        help_text="How nodes are asked to sample judge answers; 0 means greedy.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True, editable=False)
    ended_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state="running"), name="one_running_season"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Round(models.Model):
    """One quiz: the same sealed questions for every node, and a deadline."""

    class Phase(models.TextChoices):
        """Where a round stands."""

        SCHEDULED = "scheduled"
        OPEN = "open"
        SCORING = "scoring"
        CLOSED = "closed"
        VOID = "void"

    number = models.PositiveIntegerField(unique=True)
    season = models.ForeignKey(Season, on_delete=models.PROTECT, related_name="rounds")
    phase = models.CharField(max_length=16, choices=Phase, default=Phase.SCHEDULED)
    opens_at = models.DateTimeField(db_index=True)
    closes_at = models.DateTimeField(help_text="The deadline of answers, by the server's clock.")
    score_by = models.DateTimeField(
        help_text="When the round closes even if some answers could not be scored."
    )
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)
    void_reason = models.CharField(max_length=200, blank=True)
    secret = models.BinaryField(max_length=SECRET_BYTES, default=draw_secret, editable=False)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.CheckConstraint(
                condition=Q(opens_at__lt=F("closes_at")) & Q(closes_at__lte=F("score_by")),
                name="round_phases_in_order",
            ),
            models.UniqueConstraint(
                fields=["season"], condition=Q(phase="open"), name="one_open_round_a_season"
            ),
        ]

    def __str__(self) -> str:
        return f"round {self.number}"

    def get_absolute_url(self) -> str:
        """Return the path of the round's page."""
        return f"/rounds/{self.number}/"


class Question(models.Model):
    """One sealed question: nodes see the prompt; the spec stays here until the round closed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="questions")
    position = models.PositiveSmallIntegerField()
    dataset = models.CharField(max_length=80)
    spec = models.JSONField(help_text="The task spec; whoever has it can make the answer.")
    prompt = models.TextField()

    class Meta:
        ordering = ["round", "position"]
        constraints = [
            models.UniqueConstraint(fields=["round", "position"], name="one_question_a_position"),
        ]

    def __str__(self) -> str:
        return f"question {self.position} of {self.round}"


class Seat(models.Model):
    """A node's place in a round: invited when the round opened, offered when it took questions.

    Offered questions that stay unanswered are wrong; a node that was never offered any is absent.
    """

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="seats")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="seats")
    offered_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "node"], name="one_seat_a_node"),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.round}"


class Answer(models.Model):
    """A node's answer to a question; the first one counts, and it is scored once."""

    question = models.ForeignKey(Question, on_delete=models.CASCADE, related_name="answers")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="answers")
    text = models.TextField(blank=True)
    finish_reason = models.CharField(max_length=16)
    received_at = models.DateTimeField()
    score = models.FloatField(null=True, blank=True)
    solved = models.BooleanField(null=True, blank=True)
    verdict = models.CharField(max_length=32, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["question", "node"], name="one_answer_a_question"),
            models.CheckConstraint(
                condition=Q(score__isnull=True, solved__isnull=True)
                | Q(score__gte=0, score__lte=1, solved__isnull=False),
                name="answer_score_is_a_fraction",
            ),
        ]
        indexes = [
            models.Index(
                fields=["received_at"], condition=Q(score__isnull=True), name="unscored_answers"
            ),
        ]

    def __str__(self) -> str:
        return f"answer of {self.node} to {self.question_id}"


class Score(models.Model):
    """A node's judge score in one closed round: `correct` of `n`, with a 95 % interval."""

    class Status(models.TextChoices):
        """Whether the round counts for the node."""

        SCORED = "scored"
        ABSENT = "absent"

    class Reason(models.TextChoices):
        """Why a result is lower than it might be, or does not count."""

        NONE = "", "complete"
        UNANSWERED = "unanswered", "some questions were offered and not answered: counted as wrong"
        UNSCORED = "unscored", "some answers could not be verified in time: left out"
        NOT_OFFERED = "not_offered", "invited, but never asked for the questions: not counted"

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="scores")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="scores")
    model = models.CharField(max_length=200)
    arm = models.CharField(max_length=16, choices=Node.Arm)
    status = models.CharField(max_length=16, choices=Status)
    reason = models.CharField(max_length=16, choices=Reason, blank=True)
    correct = models.PositiveSmallIntegerField(default=0)
    n = models.PositiveSmallIntegerField(default=0)
    score = models.FloatField(null=True)
    interval_low = models.FloatField(null=True)
    interval_high = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "node"], name="one_score_a_round"),
            models.CheckConstraint(condition=Q(correct__lte=F("n")), name="score_correct_of_n"),
            models.CheckConstraint(
                condition=Q(status="scored", n__gt=0, score__isnull=False)
                | Q(status="absent", n=0, score__isnull=True),
                name="score_has_questions",
            ),
        ]
        indexes = [models.Index(fields=["node", "round"], name="scores_of_a_node")]

    def __str__(self) -> str:
        return f"{self.node} in {self.round}: {self.correct} of {self.n}"
