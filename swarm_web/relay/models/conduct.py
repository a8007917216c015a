"""How a node behaved in a season, and how often its rollouts are handed out for it."""

from typing import Any

from django.db import models
from django.utils.translation import gettext_lazy as _

from swarm_web.nodes.models import Node
from swarm_web.relay import conduct


class Conduct(models.Model):
    """Evidence about one node in one season, and its level (`relay.conduct`).

    Web processes add to `refused`, `copies`, `hurried` and `floods` and set `pending`; `refused`
    counts rollouts that are none of the season's and messages that could not be read, `hurried`
    those that came too fast, and `floods` how often it was hung up on because it went on. A worker
    counts spot checks in `checked` and `worthless`. `sent_window` is {"since", "published",
    "refused", "copies", "hurried", "floods"}: the totals when the window of messages began.
    `check_window` is {"since", "worthless", "declared", "misdeclared", "cells"} of the window of
    checks. Both are empty before the first look, and lack what older versions did not count.

    `charge`, `bad`, `total` and `allowed` are the last finding, `since` when the level was set, and
    `until` when it rises. While `pinned` is set, an operator has decided, and nothing changes it.
    """

    class Level(models.TextChoices):
        """How often rollouts of the node are handed out."""

        FULL = conduct.Level.FULL.value, _("handed out in full")
        LOWERED = conduct.Level.LOWERED.value, _("handed out a quarter as often")
        WITHHELD = conduct.Level.WITHHELD.value, _("withheld from other nodes")

    class Charge(models.TextChoices):
        """Why the level was set."""

        REFUSED = conduct.Charge.REFUSED.value, _("sends what is refused")
        FLOODING = conduct.Charge.FLOODING.value, _("sends too fast")
        UNHEEDING = conduct.Charge.UNHEEDING.value, _("sends on without heeding replies")
        COPYING = conduct.Charge.COPYING.value, _("sends copies")
        WORTHLESS = conduct.Charge.WORTHLESS.value, _("sends what teaches nobody")
        MISDECLARED = conduct.Charge.MISDECLARED.value, _("declares falsely")
        TOO_RIGHT = conduct.Charge.TOO_RIGHT.value, _("is too right to be true")
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
        """The level, as the rules read it."""
        return conduct.Hold(conduct.Level(self.level), self.findings, self.until)

    @property
    def is_held(self) -> bool:
        """Whether rollouts of the node are handed out less than those of others."""
        return self.level != self.Level.FULL
