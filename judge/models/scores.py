"""Scores of rounds, and what is kept ready of them so that no page adds up answers.

`Score` is a node's result in one round and the only source; `Ledger`, `Standing` and `Comparison`
follow from it and can be rebuilt. The first two are replaced whole when a round closes, so they do
without the indexes that a unique constraint makes needless, and without checks of foreign keys,
which took half of a refresh.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from judge.models.rounds import Round
from judge.models.seasons import Season
from swarm_web.nodes.models import Node


class Score(models.Model):
    """A node's judge score in one closed round: macro pass@1, with `correct` of `n` solved.

    `cells` maps each dataset to [correct, n]. `answered` and `solved` hold one bit a question, in
    the round's order (numpy.packbits): answered ones count, solved or not.
    """

    class Status(models.TextChoices):
        """Whether the round counts for the node."""

        SCORED = "scored"
        ABSENT = "absent"

    class Reason(models.TextChoices):
        """Why a result is lower than it might be, or does not count."""

        NONE = "", _("complete")
        UNANSWERED = (
            "unanswered",
            _("some questions were sent but not answered: they count as wrong"),
        )
        UNSCORED = (
            "unscored",
            _("some questions could not be graded in time: they do not count for any node"),
        )
        NOT_OFFERED = "not_offered", _("invited, but did not request the questions: not counted")
        DECLINED = (
            "declined",
            _(
                "invited, but only other nodes of its owner requested the questions: ranks "
                "count the round as zero solved"
            ),
        )
        CAME_LATE = "came_late", _("joined after the round opened: takes part in the next one")

    round = models.ForeignKey(
        Round, on_delete=models.CASCADE, related_name="scores", db_index=False
    )
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="scores", db_index=False)
    model = models.CharField(max_length=200)
    arm = models.CharField(max_length=16, choices=Node.Arm)
    status = models.CharField(max_length=16, choices=Status)
    reason = models.CharField(max_length=16, choices=Reason, blank=True)
    correct = models.PositiveSmallIntegerField(default=0)
    n = models.PositiveSmallIntegerField(default=0)
    cells = models.JSONField(default=dict)
    answered = models.BinaryField(default=bytes)
    solved = models.BinaryField(default=bytes)
    score = models.FloatField(null=True)
    interval_low = models.FloatField(null=True)
    interval_high = models.FloatField(null=True)
    deviation = models.FloatField(
        null=True, help_text="Score minus the mean score of the same model's nodes in the round."
    )

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
        indexes = [
            models.Index(fields=["node", "round"], name="scores_of_a_node"),
            models.Index(
                "round", F("score").desc(nulls_last=True), "node", name="scores_best_first"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.round}: {self.correct} of {self.n}"


class Window(models.TextChoices):
    """The stretches of rounds over which a node's score is shown."""

    SEASON = "season", "all rounds of the season"
    ROUND = "round", "the last closed round"
    RECENT = "recent", "the last rounds, as many as the season says"
    DAY = "24h", "rounds that closed within 24 hours"
    WEEK = "7d", "rounds that closed within 7 days"


class Counted(models.Model):
    """A round whose scores are added into a window's tallies."""

    window = models.CharField(max_length=8, choices=Window)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="counted")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "window"], name="counted_once_a_window"),
        ]

    def __str__(self) -> str:
        return f"{self.round} in {self.window}"


class Ledger(models.Model):
    """A node's running account in a season.

    `tallies` maps each window to {"cells": {dataset: [correct, n]}, "rounds": k, "missed": m}, with
    the rounds that it was scored in and those that it missed though invited. `answered`,
    `solved` and `scores` are the node's part of the season's stream (`swarm_record.stream`): two
    bits a question, and the macro scores of the rounds after them (float32, little-endian, NaN
    where it took no part). `deviations` adds up Score.deviation over `deviation_rounds` rounds.
    """

    season = models.ForeignKey(
        Season,
        on_delete=models.CASCADE,
        related_name="ledgers",
        db_index=False,
        db_constraint=False,
    )
    node = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="ledgers", db_constraint=False
    )
    model = models.CharField(max_length=200)
    arm = models.CharField(max_length=16, choices=Node.Arm)
    tallies = models.JSONField(default=dict)
    answered = models.BinaryField(default=bytes)
    solved = models.BinaryField(default=bytes)
    scores = models.BinaryField(default=bytes)
    deviations = models.FloatField(default=0.0)
    deviation_rounds = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["season", "node"], name="one_ledger_a_season"),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season}"


class Standing(models.Model):
    """A node's line of the leaderboard in one window, written when a round closes.

    Nodes that cannot be told apart share ranks `rank_low` to `rank_high`; both are null while
    `remark` says why the node is not ranked. `place` numbers the window's lines from 1 without a
    gap (`swarm_record.publishing.in_order`): pages begin after a place, which costs the same
    everywhere.
    """

    class Remark(models.TextChoices):
        """Why a node is not ranked."""

        NONE = "", "ranked"
        TOO_FEW = "too_few", _("not enough questions in this window yet")
        BASE = "base", _("an untrained model, shown for comparison")
        OFTEN_ABSENT = "often_absent", _("missed too many of the rounds it was invited to")
        QUARANTINED = "quarantined", _("removed from the ranking by the operator")

    season = models.ForeignKey(
        Season,
        on_delete=models.CASCADE,
        related_name="standings",
        db_index=False,
        db_constraint=False,
    )
    window = models.CharField(max_length=8, choices=Window)
    node = models.ForeignKey(
        Node,
        on_delete=models.CASCADE,
        related_name="standings",
        db_index=False,
        db_constraint=False,
    )
    model = models.CharField(max_length=200)
    arm = models.CharField(max_length=16, choices=Node.Arm)
    remark = models.CharField(max_length=16, choices=Remark, blank=True)
    place = models.PositiveIntegerField()
    rank_low = models.PositiveIntegerField(null=True)
    rank_high = models.PositiveIntegerField(null=True)
    score = models.FloatField()
    interval_low = models.FloatField()
    interval_high = models.FloatField()
    correct = models.PositiveIntegerField()
    n = models.PositiveIntegerField()
    rounds = models.PositiveIntegerField()
    missed = models.PositiveIntegerField(default=0, db_default=0)
    cells = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["season", "window", "node"], name="one_standing_a_window"
            ),
        ]
        indexes = [
            models.Index(fields=["season", "window", "place"], name="standings_in_order"),
            # A handful among thousands, and nearly every page asks for some.
            models.Index(
                fields=["season", "window", "model"],
                condition=models.Q(remark="base"),
                name="untrained_standings",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season} ({self.window})"


class Comparison(models.Model):
    """The judge's claim about swarm and isolated nodes of one model in a season."""

    season = models.ForeignKey(Season, on_delete=models.CASCADE, related_name="comparisons")
    model = models.CharField(max_length=200)
    claim = models.JSONField(help_text="judge.comparison.Claim")
    tasks = models.JSONField(default=list, help_text="judge.task_gaps.TaskGap by dataset.")
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["season", "model"], name="one_comparison_a_model"),
        ]

    def __str__(self) -> str:
        return f"{self.model} in {self.season}"
