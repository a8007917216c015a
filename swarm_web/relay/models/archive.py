"""The archive: a sample of shared rollouts, checked by the site, and who trained on them."""

from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Q

from swarm_protocol.errors import ErrorCode
from swarm_web.nodes.models import Node


class ArchivedRolloutQuerySet(models.QuerySet["ArchivedRollout"]):
    """QuerySet of archived rollouts."""

    def waiting(self) -> "ArchivedRolloutQuerySet":
        """Filter to rollouts not yet checked."""
        return self.filter(checked_at=None)

    def verified(self) -> "ArchivedRolloutQuerySet":
        """Filter to rollouts whose question was regenerated and whose completions have verdicts."""
        return self.filter(solved__isnull=False)

    def newest_first(self) -> "ArchivedRolloutQuerySet":
        """Order by publication time, newest first, and equal times by descending primary key."""
        return self.order_by("-published_at", "-pk")


class ArchivedRollout(models.Model):
    """A published rollout in the archive: question, completions, and the site's verdicts on them.

    `rollout` is the id that its author gave it, and `step` the author's policy step. `completions`
    is a list of {text, finish_reason, score, solved, verdict}; `verdict` is a reason such as
    "right" (`swarm_tasks.verdicts`). The author's own scores are neither sent nor stored.

    The check sets `checked_at`. If it can score the rollout, it also sets `question`, `solved` (how
    many of `total` completions are right), and each completion's `score`, `solved` and `verdict`.
    Before the check, and if it cannot score the rollout, `question` is empty, and all `score`,
    `solved` and `verdict` are null; `failure` (an ErrorCode) says why the rollout could not be
    scored. `learned_by` is the number of rows in `learned` when the last one was added.
    """

    season = models.ForeignKey(
        "judge.Season", on_delete=models.CASCADE, related_name="archived_rollouts", db_index=False
    )
    author = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="archived_rollouts", db_index=False
    )
    rollout = models.CharField(max_length=64)
    dataset = models.CharField(max_length=200)
    spec = models.JSONField[dict[str, Any]]()
    model = models.CharField(max_length=200)
    step = models.BigIntegerField()
    completions = models.JSONField[list[dict[str, Any]]]()
    question = models.TextField(blank=True)
    published_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=64, blank=True)
    solved = models.PositiveSmallIntegerField(null=True, blank=True)
    total = models.PositiveSmallIntegerField()
    learned_by = models.PositiveIntegerField(default=0)

    # The first nodes in `learned`, if a selector has read them.
    learners: list["Learned"]

    objects = ArchivedRolloutQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["season", "author", "rollout"], name="archived_rollout_once"
            ),
        ]
        indexes = [
            # Also used for pruning.
            models.Index(fields=["-published_at", "-id"], name="archive_newest"),
            *(
                models.Index(
                    fields=[field, "-published_at", "-id"],
                    name=f"archive_by_{field}",
                    condition=Q(solved__isnull=False),
                )
                for field in ("season", "author", "dataset", "model")
            ),
            GinIndex(
                SearchVector("question", config="simple"),
                name="archive_by_words",
            ),
            models.Index(
                fields=["season", "-published_at", "-id"],
                name="archive_right",
                condition=Q(solved__gt=0),
            ),
            models.Index(
                fields=["season", "-published_at", "-id"],
                name="archive_wrong",
                condition=Q(solved=0),
            ),
            models.Index(
                fields=["published_at"], name="archive_waiting", condition=Q(checked_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.rollout} of {self.author}"

    @property
    def is_refuted(self) -> bool:
        """Whether the check found that the rollout has no right completion, or cannot be scored.

        If it cannot be scored, `failure` has the reason. The reason VERIFIER_FAILED does not count,
        because it says nothing about the rollout. Before the check, this is False.
        """
        return self.solved == 0 or self.failure not in ("", ErrorCode.VERIFIER_FAILED)


class Learned(models.Model):
    """A node that was given an archived rollout, and reported that it trained on it."""

    rollout = models.ForeignKey(
        ArchivedRollout, on_delete=models.CASCADE, related_name="learned", db_index=False
    )
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="learned")
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "node"], name="learned_once"),
        ]

    def __str__(self) -> str:
        return f"{self.node} from {self.rollout}"
