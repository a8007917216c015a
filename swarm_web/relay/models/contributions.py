"""Counters of what a node published and used in a season."""

from django.db import models

from swarm_web.nodes.models import Node


class Contribution(models.Model):
    """One node's contribution to a season.

    The server counts `published`, `rejected` (sent by this node, but not accepted) and `delivered`
    (to this node). `step`, `training_reward`, `informative_share`, `local_used`, `external_used`
    and `external_dropped` come from the node's training reports. A reported `external_used` over
    `delivered` is stored as `delivered`. `used_by_others` counts how often other nodes reported
    that they trained on this node's rollouts. It does not count refuted rollouts, nor uses over the
    limit for a pair of parties (`relay.pairs`).

    `declared_checked` counts the node's declarations that the site checked, and `declared_false`
    the false ones among them. `window_checked` and `window_false` are the same counts for the
    current window of checks, which decides whether the node's declarations count (`relay.trust`).
    While `declarations_lapsed_at` is set, the declarations do not count.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="contributions")
    season = models.ForeignKey(
        "judge.Season", on_delete=models.CASCADE, related_name="contributions"
    )
    published = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    delivered = models.BigIntegerField(default=0)
    step = models.BigIntegerField(default=0)
    training_reward = models.FloatField(null=True)
    informative_share = models.FloatField(null=True)
    local_used = models.BigIntegerField(default=0)
    external_used = models.BigIntegerField(default=0)
    external_dropped = models.JSONField(default=dict)
    used_by_others = models.BigIntegerField(default=0)
    declared_checked = models.BigIntegerField(default=0)
    declared_false = models.BigIntegerField(default=0)
    window_checked = models.PositiveSmallIntegerField(default=0)
    window_false = models.PositiveSmallIntegerField(default=0)
    declarations_lapsed_at = models.DateTimeField(null=True, blank=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["node", "season"], name="one_contribution_a_season"),
        ]

    def __str__(self) -> str:
        return f"{self.node} in {self.season}"
