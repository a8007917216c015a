"""Seasons: periods of rounds, each with one task mix and one set of rules."""

import math
import secrets

import msgspec
from django.core.exceptions import ValidationError
from django.core.validators import (
    MaxLengthValidator,
    MaxValueValidator,
    MinValueValidator,
    RegexValidator,
)
from django.db import models
from django.db.models import F, Q
from django.utils.functional import cached_property

from judge.prompts import MAX_PROMPT_CHARS, check_system_prompt
from swarm_protocol.messages import Preference, TaskChoice
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_tasks.answers import NEWEST_RULES, AnswerRules
from swarm_web.nodes.models import Node

_VERSION = RegexValidator(r"^\d+\.\d+\.\d+\Z", "Give a version such as 1.2.3.")


_DAY_S = 86_400
# The admin's label of each sampling strategy.
SAMPLING_WORDS: dict[Preference, str] = {
    "any": "uniform over rollouts (the paper)",
    "informative": "rollouts first that their senders declared informative",
    "by_node": "uniform over owners",
    "by_task": "uniform over datasets",
    "fresh": "newer rollouts more likely than older ones",
}
_YEAR_S = 365 * _DAY_S


def draw_seed() -> int:
    """Return a random public seed for a season."""
    return secrets.randbelow(2**31)


def every_sampling() -> list[str]:
    """Return all sampling strategies that nodes may request."""
    return list(SAMPLING_WORDS)


def check_sampling(names: object) -> None:
    """Raise ValidationError unless `names` are distinct sampling strategies that include `any`."""
    try:
        preferences = msgspec.convert(names, list[Preference])
    except msgspec.ValidationError:
        preferences = []
    if "any" not in preferences or len(set(preferences)) < len(preferences):
        raise ValidationError(
            f"Enter a list of distinct values from {', '.join(SAMPLING_WORDS)} that includes any."
        )


class Season(models.Model):
    """A period of rounds with one task mix and one set of rules; at most one season is running."""

    class State(models.TextChoices):
        """The states of a season."""

        DRAFT = "draft"
        RUNNING = "running"
        ENDED = "ended"

    class LateJoiners(models.TextChoices):
        """What happens to a node that joins while a round is open."""

        WAIT = "wait", "wait for the next round"
        JOIN = "join", "take part in the remaining time"

    class Assignment(models.TextChoices):
        """Who decides whether a node is in the swarm arm or the isolated arm."""

        CHOICE = "choice", "each node's owner"
        COIN = "coin", "a coin flip by the judge, once per node and season"

    name = models.CharField(max_length=80, unique=True)
    state = models.CharField(max_length=16, choices=State, default=State.DRAFT)
    paused = models.BooleanField(
        default=False, help_text="A paused season opens no new rounds; an open one is finished."
    )

    halt_reason = models.TextField(
        blank=True,
        default="",
        editable=False,
        help_text="Why the judge paused the season automatically, and what to do.",
    )

    # ---- what is asked
    tasks = models.JSONField(
        help_text='The task mix: [{"dataset": "gcd", "config": {"max_value": 20}, "weight": 1}, …]'
    )
    seed = models.BigIntegerField(
        default=draw_seed,
        editable=False,
        help_text="The seed of every task of the season; tasks differ by index.",
    )
    generator = models.CharField(max_length=80, editable=False)
    questions_per_round = models.PositiveSmallIntegerField(
        default=16,
        validators=[MinValueValidator(1), MaxValueValidator(256)],
        help_text="By weight, with at least one for each dataset.",
    )
    max_new_tokens = models.PositiveIntegerField(
        default=256,
        validators=[MinValueValidator(1), MaxValueValidator(8_192)],
        help_text="The judge's limit on an answer's length, in tokens of the node's own tokenizer.",
    )
    temperature = models.FloatField(
        default=0.0,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
        help_text="Sampling temperature for answers to the judge; 0 means greedy.",
    )
    system_prompt = models.TextField(
        default=SYSTEM_PROMPT,
        validators=[MaxLengthValidator(MAX_PROMPT_CHARS), check_system_prompt],
        help_text="The system prompt of every question, in training and in the judge's "
        "rounds. It must ask for the answer between <answer> and </answer>.",
    )

    answer_rules = models.CharField(
        max_length=16,
        choices=[(rules.value, rules.value) for rules in AnswerRules],
        default=NEWEST_RULES.value,
        editable=False,
        help_text="How answers are read (swarm_tasks.answers): the newest way when the season was "
        "made, and the same in all of its rounds.",
    )

    public_beacon = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Mix each round's secret with a value that drand, a public source of randomness, "
        "publishes after the commitment. So nobody can choose a secret for its questions. Rounds "
        "become void while no server of drand can be reached, and need a newer client to be "
        "checked.",
    )

    # ---- how nodes train
    completions = models.PositiveSmallIntegerField(
        default=8,
        validators=[MinValueValidator(2), MaxValueValidator(64)],
        help_text="L: completions in a rollout.",
    )
    # According to docs/lab.md, this recipe beats the paper's 4/4, even with hostile nodes.
    local = models.PositiveSmallIntegerField(
        default=8,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text="I: own rollouts in a training set.",
    )
    external = models.PositiveSmallIntegerField(
        default=24,
        validators=[MaxValueValidator(64)],
        help_text="J: external rollouts in a training set.",
    )
    batch = models.PositiveSmallIntegerField(
        "rollouts generated",
        null=True,
        blank=True,
        default=8,
        validators=[MinValueValidator(1), MaxValueValidator(64)],
        help_text="Rollouts that a node generates in each step, in both arms; isolated nodes train "
        "on as many. Empty is I + J. With fewer, a training set is filled up from the pool.",
    )
    assignment = models.CharField(
        max_length=16,
        choices=Assignment,
        default=Assignment.CHOICE,
        help_text="The comparison of swarm and isolated nodes is evidence only with a coin flip.",
    )
    isolated_share = models.FloatField(
        default=0.5,
        validators=[MinValueValidator(0.05), MaxValueValidator(0.95)],
        help_text="With a coin flip: the probability that a node is isolated.",
    )
    trial_rounds = models.PositiveIntegerField(
        "rounds of the trial",
        default=200,
        validators=[MinValueValidator(3), MaxValueValidator(100_000)],
        help_text="The last test of the arms is made after this many rounds, with a few "
        "tests before. Later rounds do not change the result.",
    )
    isolated_publish = models.BooleanField(
        "isolated nodes publish",
        default=False,
        help_text="Whether isolated nodes share their rollouts with the swarm, although they "
        "receive none. If off, they neither share nor receive: the arms are then training in the "
        "swarm and alone, as in the SAPO paper.",
    )

    sampling = models.JSONField(
        default=every_sampling,
        validators=[check_sampling],
        help_text="How nodes may ask the pool to sample rollouts for them. Uniform sampling is "
        "always allowed.",
    )

    # ---- the clock
    cadence_seconds = models.PositiveIntegerField(
        default=300,
        validators=[MaxValueValidator(86_400 * 7)],
        help_text="Seconds from one opening to the next; 0 means that rounds are created manually.",
    )
    planned_rounds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="The number of rounds that the mix must have questions for; none is asked twice. "
        "Empty: for a year at this cadence.",
    )
    open_seconds = models.PositiveIntegerField(
        default=120, validators=[MinValueValidator(5), MaxValueValidator(86_400)]
    )
    scoring_seconds = models.PositiveIntegerField(
        default=60, validators=[MinValueValidator(5), MaxValueValidator(3_600)]
    )
    early_advance = models.BooleanField(
        default=True, help_text="End answering early once every node has answered all questions."
    )
    late_joiners = models.CharField(max_length=8, choices=LateJoiners, default=LateJoiners.WAIT)
    watched_at = models.DateTimeField(
        null=True, editable=False, help_text="When the judge last checked the season."
    )

    # ---- how scores are read
    recent_rounds = models.PositiveSmallIntegerField(
        default=20,
        validators=[MinValueValidator(1), MaxValueValidator(1_000)],
        help_text="K: the number of rounds in the window “recent”.",
    )
    minimum_questions = models.PositiveIntegerField(
        default=16,
        validators=[MinValueValidator(1)],
        help_text="A node is ranked once this many of its questions count in the window.",
    )
    minimum_attendance = models.PositiveSmallIntegerField(
        default=90,
        db_default=90,
        validators=[MaxValueValidator(100)],
        help_text="In percent of the rounds that a node was scored in or missed: a node that was "
        "scored in a smaller share is not ranked. 0 ranks every node.",
    )

    # ---- who may take part
    minimum_client = models.CharField(
        max_length=20,
        blank=True,
        validators=[_VERSION],
        help_text="Older clients are refused. Empty: the site's own minimum.",
    )
    next_minimum_client = models.CharField(
        max_length=20,
        blank=True,
        validators=[_VERSION],
        help_text="Older clients are warned on connecting that they will be refused soon.",
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

    @cached_property
    def choices(self) -> list[TaskChoice]:
        """The task mix, decoded once per instance because each rollout is checked against it."""
        return msgspec.convert(self.tasks, list[TaskChoice])

    @property
    def is_active(self) -> bool:
        """Whether the season may open rounds: it is running and not paused."""
        return self.state == self.State.RUNNING and not self.paused

    @property
    def rounds_to_ask(self) -> int:
        """For how many rounds the mix must have questions.

        This is `planned_rounds`, or if that is null, the number of rounds in a year: one every
        `cadence_seconds`, or one a day if the cadence is 0.
        """
        return self.planned_rounds or math.ceil(_YEAR_S / (self.cadence_seconds or _DAY_S))


class CoinBlock(models.Model):
    """A block of arms that the coin has drawn in advance for the next nodes of a model.

    `arms` has one arm for each of `size` places. The first `taken` places have nodes; the arms of
    the other places stay secret. Blocks keep the arms of a model balanced. The randomisation test
    of a season shuffles the arms of each block (`judge.statistics.randomisation`).
    """

    season = models.ForeignKey(Season, on_delete=models.CASCADE, related_name="coin_blocks")
    model = models.CharField(max_length=200)
    arms = models.JSONField()
    size = models.PositiveSmallIntegerField()
    taken = models.PositiveSmallIntegerField(default=0)

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(taken__lte=F("size")), name="block_has_places"),
        ]

    def __str__(self) -> str:
        return f"{self.taken} of {self.size} {self.model} in {self.season}"


class Enrolment(models.Model):
    """A node's arm in a season, and who decided it.

    `block` and `place` locate the arm that the coin drew for the node. They are kept if the owner
    later makes the node `base`, so that it gets the same arm if it stops being `base`. They are
    null if no coin was flipped for the node, or if it was flipped before blocks existed.
    """

    season = models.ForeignKey(Season, on_delete=models.CASCADE, related_name="enrolments")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="enrolments")
    arm = models.CharField(max_length=16, choices=Node.Arm)
    assignment = models.CharField(max_length=16, choices=Season.Assignment)
    block = models.ForeignKey(
        CoinBlock, null=True, on_delete=models.CASCADE, related_name="enrolments"
    )
    place = models.PositiveSmallIntegerField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["season", "node"], name="one_enrolment_a_season"),
            models.UniqueConstraint(fields=["block", "place"], name="one_node_a_place"),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season}: {self.arm}"
