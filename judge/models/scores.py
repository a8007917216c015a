"""Scores of rounds, and tables derived from them so that no page has to add up answers.

A `Score` is a node's result in one round. `RoundSummary`, `Ledger`, `Standing` and `Comparison` are
computed from the scores and can be rebuilt. When a round closes, the ledgers of its nodes and the
standings of whole leaderboards are replaced. To make this fast, the tables of ledgers and standings
have no index that a unique constraint makes redundant, and no foreign key checks, which took half
the time.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from judge.models.rounds import Round
from judge.models.seasons import Season
from swarm_record.stats import Interval
from swarm_web.nodes.models import Node


class Score(models.Model):
    """A node's judge score in one closed round, or why it has none.

    `score` is macro pass@1. The node solved `correct` of the `n` questions that count. `cells` maps
    each dataset to [correct, n]. `answered` and `solved` have one bit per question, in the round's
    order (numpy.packbits); the bits of `answered` mark the questions that count. If the node has no
    score, `score` is null, and `cells`, `answered` and `solved` are empty.
    """

    class Status(models.TextChoices):
        """Whether the node has a score in the round."""

        SCORED = "scored"
        ABSENT = "absent"

    class Reason(models.TextChoices):
        """Why a score is missing or incomplete; empty if it is complete."""

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
                "invited, but only other nodes of its owner got the questions: ranks "
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

    @property
    def interval(self) -> Interval | None:
        """The score's 95 % interval; None without a score."""
        low, high = self.interval_low, self.interval_high
        return None if low is None or high is None else (low, high)


class RoundSummary(models.Model):
    """A closed round's statistics and number of seats, and its results by arm and dataset.

    The statistics are the attributes of `judge.statistics.summaries.RoundStatistics`. A summary is
    written together with the round's scores. It depends on the scores and on which nodes are
    quarantined: a `stale` summary predates a node's quarantine or release, and will be rebuilt.
    """

    round = models.OneToOneField(
        Round, primary_key=True, on_delete=models.CASCADE, related_name="summary"
    )
    seats = models.PositiveIntegerField()
    scored = models.PositiveIntegerField()
    trained = models.PositiveIntegerField()
    low = models.FloatField(null=True, help_text="First quartile of the trained nodes' scores.")
    median = models.FloatField(null=True)
    high = models.FloatField(null=True, help_text="Third quartile.")
    best = models.FloatField(null=True)
    tallies = models.JSONField(help_text="For each question: [solved, counted].")
    groups = models.JSONField(help_text="judge.statistics.summaries.ArmGroup by model and arm.")
    datasets = models.JSONField(default=dict, help_text="By arm and dataset: [correct, n].")
    stale = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(fields=["round"], condition=Q(stale=True), name="stale_summaries"),
        ]

    def __str__(self) -> str:
        return f"summary of {self.round}"


class Window(models.TextChoices):
    """The periods over which leaderboards show scores."""

    SEASON = "season", "all rounds of the season"
    ROUND = "round", "the last closed round"
    RECENT = "recent", "the last rounds, as many as the season says"
    DAY = "24h", "rounds that closed within 24 hours"
    WEEK = "7d", "rounds that closed within 7 days"


class Counted(models.Model):
    """A round whose results the tallies of ledgers include in one window."""

    window = models.CharField(max_length=8, choices=Window)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="counted")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["round", "window"], name="counted_once_a_window"),
        ]

    def __str__(self) -> str:
        return f"{self.round} in {self.window}"


class Ledger(models.Model):
    """A node's running totals in a season.

    `tallies` maps windows to {"cells": {dataset: [correct, n]}, "rounds": k, "missed": m}. The node
    was scored in k of the window's rounds, and was invited to m others but missed them. A window in
    which k and m are 0 is left out. `deviations` is the sum of Score.deviation over
    `deviation_rounds` rounds.

    `answered`, `solved` and `scores` are the node's row in the matrix of a season's results
    (`swarm_record.stream`). For the questions of the season's first rounds, `answered` has a bit
    for whether the question counts for the node, and `solved` for whether the node solved it. For
    later rounds, `scores` has the macro score (float32, little-endian, NaN for rounds that do not
    count for the node).
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
    """A node's row of the leaderboard in one window.

    All rows of a window are rewritten when its rounds change, when the operator changes who is
    ranked, and when a node is quarantined or released. Nodes that do not differ significantly share
    the ranks `rank_low` to `rank_high`. Both are null in windows other than `season`, and for a
    node that is not ranked; its `remark` says why. `place` numbers the window's rows from 1 without
    gaps, in the order of `swarm_record.board_rows.sort_rows`, so that every page of the leaderboard
    can be read equally fast.
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
            # There are few among thousands, and nearly every page reads them.
            models.Index(
                fields=["season", "window", "model"],
                condition=models.Q(remark="base"),
                name="untrained_standings",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season} ({self.window})"


class Comparison(models.Model):
    """The judge's claim about the swarm and isolated nodes of one model in a season."""

    season = models.ForeignKey(Season, on_delete=models.CASCADE, related_name="comparisons")
    model = models.CharField(max_length=200)
    claim = models.JSONField(help_text="judge.statistics.comparison.ArmsClaim")
    tasks = models.JSONField(
        default=list, help_text="judge.statistics.task_gaps.TaskGap by dataset."
    )
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["season", "model"], name="one_comparison_a_model"),
        ]

    def __str__(self) -> str:
        return f"{self.model} in {self.season}"
