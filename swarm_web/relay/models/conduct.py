"""A node's conduct in a season, and its hand-out weight."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from swarm_web.nodes.models import Node
from swarm_web.relay import conduct


class Conduct(models.Model):
    """Evidence about one node in one season, and the node's hand-out level (`relay.conduct`).

    Web processes add to these totals of the season: `refused` (rollouts that the season's rules do
    not allow and unreadable messages), `copies`, `hurried` (messages over the rate limit) and
    `floods` (connections closed because the node continued to send). A worker counts spot checks in
    `checked`, and those of worthless rollouts in `worthless`. `pending` means that one of these
    totals has changed since the last evaluation.

    `sent_window` is {"since", "published", "refused", "copies", "hurried", "floods"}: the totals
    when the window of messages began. `check_window` is {"since", "worthless", "declared",
    "misdeclared", "cells"}: the counts (`relay.conduct.Checks`) since the window of checks began. A
    window that has not begun is empty. Keys that older versions did not write may be missing.

    `charge`, `bad`, `total` and `allowed` are those of the last finding (`relay.conduct.Finding`),
    and `findings` counts the findings of the season. When an operator sets the level, `bad`,
    `total` and `findings` become 0. `charge` then becomes OPERATOR, or empty if the level is full
    and not pinned. `since` is when the level last changed or was set by an operator. `until` is
    when the level rises by one; if it is None, the level does not rise by itself. If `pinned` is
    true, only an operator can change the level.
    """

    class Level(models.TextChoices):
        """How often rollouts of the node are handed out."""

        FULL = conduct.Level.FULL.value, _("delivered in full")
        LOWERED = conduct.Level.LOWERED.value, _("delivered a quarter as often")
        WITHHELD = conduct.Level.WITHHELD.value, _("withheld from other nodes")

    class Charge(models.TextChoices):
        """Why the level was set: the rule that the node broke, or the operator's decision."""

        REFUSED = conduct.Charge.REFUSED.value, _("too many refused messages")
        FLOODING = conduct.Charge.FLOODING.value, _("exceeds the rate limit")
        UNHEEDING = conduct.Charge.UNHEEDING.value, _("ignores replies")
        COPYING = conduct.Charge.COPYING.value, _("shares copies")
        WORTHLESS = conduct.Charge.WORTHLESS.value, _("shares unusable rollouts")
        MISDECLARED = conduct.Charge.MISDECLARED.value, _("false declarations")
        TOO_RIGHT = conduct.Charge.TOO_RIGHT.value, _("implausibly high accuracy")
        OPERATOR = "operator", _("decided by the operator")

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="conduct")
    season = models.ForeignKey(
        "judge.Season", on_delete=models.CASCADE, related_name="conduct", db_index=False
    )
    refused = models.BigIntegerField(default=0)
    copies = models.BigIntegerField(default=0)
    hurried = models.BigIntegerField(default=0)
    floods = models.BigIntegerField(default=0, db_default=0)
    checked = models.BigIntegerField(default=0)
    worthless = models.BigIntegerField(default=0)
    sent_window = models.JSONField[dict[str, Any]](default=dict)
    check_window = models.JSONField[dict[str, Any]](default=dict)
    pending = models.BooleanField(default=False)
    level = models.CharField(max_length=16, choices=Level, default=Level.FULL)
    charge = models.CharField(max_length=16, choices=Charge, blank=True)
    bad = models.BigIntegerField(default=0)
    total = models.BigIntegerField(default=0)
    allowed = models.FloatField(default=0.0)
    findings = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(null=True, blank=True)
    until = models.DateTimeField(null=True, blank=True)
    pinned = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "conduct"
        constraints = [
            models.UniqueConstraint(fields=["season", "node"], name="one_conduct_a_season"),
        ]
        indexes = [
            models.Index(
                fields=["season"], name="conduct_pending", condition=models.Q(pending=True)
            ),
            models.Index(
                fields=["season", "-since"],
                name="conduct_held",
                condition=~models.Q(level=conduct.Level.FULL.value),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season}"

    @property
    def hold(self) -> conduct.Hold:
        """The level, number of findings and `until`, in the form that `relay.conduct` uses."""
        return conduct.Hold(conduct.Level(self.level), self.findings, self.until)

    @property
    def is_held(self) -> bool:
        """Whether the node's hand-out weight is below full."""
        return self.level != self.Level.FULL
