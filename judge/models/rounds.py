"""Rounds with their sealed questions, the nodes' seats, and their answers.

A column with `db_index=False` needs no index of its own: a unique constraint begins with it, or
queries do not filter by it alone.
"""

import secrets
import uuid

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q

from judge.engine import TRANSITIONS, Deadlines, Phase
from judge.models.seasons import Season
from swarm_tasks.answers import AnswerRules, find_rules
from swarm_web.nodes.models import Node, NodeKey

SECRET_BYTES = 32


def draw_secret() -> bytes:
    """Return a new secret: SECRET_BYTES random bytes, from which a round's questions are drawn."""
    return secrets.token_bytes(SECRET_BYTES)


class Round(models.Model):
    """One quiz: the same sealed questions for every node, and a deadline.

    `rules` and `secret` determine the questions (`swarm_tasks.quiz`). The commitment, a hash of
    both, is public from the start; the secret is revealed when the round has closed. If the rules
    name a public beacon, the questions also depend on its value, so the round has no questions
    until this value is published. The secret of such a round is also revealed if it becomes void.
    """

    Phase = Phase

    number = models.PositiveIntegerField(unique=True)
    season = models.ForeignKey(Season, on_delete=models.PROTECT, related_name="rounds")
    phase = models.CharField(
        max_length=16,
        choices=[(phase.value, phase.name.title()) for phase in Phase],
        default=Phase.SCHEDULED,
    )
    opens_at = models.DateTimeField(db_index=True)
    closes_at = models.DateTimeField(help_text="The deadline of answers, by the server's clock.")
    score_by = models.DateTimeField(
        help_text="When the round closes even if some answers could not be scored."
    )
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)
    void_reason = models.CharField(max_length=200, blank=True)
    secret = models.BinaryField(max_length=SECRET_BYTES, default=draw_secret, editable=False)
    rules = models.JSONField(default=dict, editable=False)
    commitment = models.CharField(max_length=64, blank=True, editable=False)
    beacon = models.JSONField(
        null=True,
        editable=False,
        help_text="The value of the public beacon that the rules name (swarm_tasks.beacon).",
    )
    answers_root = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="The Merkle root over all answers, fixed when answering ended.",
    )
    results_root = models.CharField(
        max_length=64, blank=True, editable=False, help_text="The Merkle root over its scores."
    )
    digests = ArrayField(
        models.BigIntegerField(),
        default=list,
        editable=False,
        help_text="The questions' digests in order (swarm_tasks.asked).",
    )
    stream_at = models.BigIntegerField(
        null=True,
        editable=False,
        help_text="Where the round's columns begin in the season's stream (swarm_record.stream).",
    )
    inspected_at = models.DateTimeField(
        null=True, editable=False, help_text="When its answers were searched for copies and jumps."
    )

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
        indexes = [
            models.Index(
                fields=["phase"],
                condition=Q(phase__in=["scheduled", "open", "scoring"]),
                name="unfinished_rounds",
            ),
            models.Index(fields=["season", "closed_at"], name="rounds_by_closing"),
            models.Index(fields=["season", "-number"], name="rounds_of_a_season"),
            models.Index(
                fields=["number"],
                condition=Q(phase="closed", inspected_at=None),
                name="uninspected_rounds",
            ),
            # Rounds are few and drawing waits for each insert, so inserts are not deferred.
            GinIndex(fields=["digests"], name="rounds_by_digest", fastupdate=False),
        ]

    def __str__(self) -> str:
        return f"round {self.number}"

    def get_absolute_url(self) -> str:
        """Return the path of the round's page."""
        return f"/rounds/{self.number}/"

    def change_phase(self, target: str, **fields: object) -> None:
        """Change the phase, set other `fields` with it, and save.

        Only this method changes the phase of a round. The caller's transaction must hold the lock
        on the row, so that no two workers make the same transition. Raises ValueError for a
        transition that `judge.engine.TRANSITIONS` does not contain.
        """
        if (Phase(self.phase), Phase(target)) not in TRANSITIONS:
            raise ValueError(f"{self} cannot change from {self.phase} to {target}")
        self.phase = target
        for name, value in fields.items():
            setattr(self, name, value)
        self.save(update_fields=["phase", *fields])

    @property
    def answer_rules(self) -> AnswerRules:
        """How answers are read; AnswerRules.EXACT if `rules` does not say, as in old rounds."""
        return find_rules(self.rules.get("answers", AnswerRules.EXACT))

    @property
    def is_drawn(self) -> bool:
        """Whether the round has its questions.

        If the rules name a beacon, the round has its questions once the beacon's value is stored.
        Otherwise it has them from the start.
        """
        return "beacon" not in self.rules or self.beacon is not None

    @property
    def is_revealed(self) -> bool:
        """Whether the questions and answers are public.

        They become public when the round closes, and stay public if it is voided later.
        """
        if self.phase == Phase.VOID:
            return self.closed_at is not None
        return self.phase == Phase.CLOSED

    @property
    def deadlines(self) -> Deadlines:
        """The round's deadlines."""
        return Deadlines(self.opens_at, self.closes_at, self.score_by)

    @deadlines.setter
    def deadlines(self, deadlines: Deadlines) -> None:
        self.opens_at = deadlines.opens_at
        self.closes_at, self.score_by = deadlines.closes_at, deadlines.score_by


class Question(models.Model):
    """One sealed question: nodes see the prompt; the task spec is secret until the round closes."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="questions")
    position = models.PositiveSmallIntegerField()
    dataset = models.CharField(max_length=80)
    spec = models.JSONField(help_text="The task spec. Anybody who has it can compute the answer.")
    prompt = models.TextField()

    class Meta:
        ordering = ["round", "position"]
        constraints = [
            models.UniqueConstraint(fields=["round", "position"], name="one_question_a_position"),
        ]

    def __str__(self) -> str:
        return f"question {self.position} of {self.round}"


class Seat(models.Model):
    """A node's place in a round.

    Invited nodes get a seat when the round opens, other nodes when they request the questions. A
    node is offered the questions when it requests them, unless its seat is marked `came_late`. Such
    a node must wait for the next round, and this round may end without its answers. Offered
    questions without an answer count as wrong; a node that was never offered any has no score.
    """

    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="seats", db_index=False)
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="seats")
    came_late = models.BooleanField(default=False)
    offered_at = models.DateTimeField(null=True, blank=True)
    completed_at = models.DateTimeField(null=True, blank=True)
    grading_seconds = models.FloatField(
        default=0.0,
        db_default=0.0,
        editable=False,
        help_text="What slow answers cost the verifier (judge.services.patience).",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "node"], name="one_seat_a_node"),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.round}"


class Answer(models.Model):
    """A node's first answer to a question; later ones are ignored.

    `score`, in [0, 1], and `solved` are null until the answer is graded. After that, they change
    only if the round is recomputed.
    """

    question = models.ForeignKey(
        Question, on_delete=models.CASCADE, related_name="answers", db_index=False
    )
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="answers", db_index=False)
    text = models.TextField(blank=True)
    key = models.ForeignKey(
        NodeKey,
        null=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    signature = models.CharField(
        max_length=128,
        blank=True,
        default="",
        db_default="",
        help_text="The node's own, in hex; empty if it signs nothing.",
    )
    finish_reason = models.CharField(max_length=16)
    received_at = models.DateTimeField()
    latency_ms = models.PositiveIntegerField(
        null=True, help_text="From the offer of the questions to the arrival of the answer."
    )
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
