"""Time series: exchanges between nodes per hour, and the course of a node's training."""

from typing import Any

from django.db import models

from swarm_web.nodes.models import Node


class Exchange(models.Model):
    """The number of rollouts of `giver` that `taker` trained on in one hour (`used`).

    The hour begins at `hour`. Only rollouts that were delivered to the taker and named in its
    reports count, each once.
    """

    season = models.ForeignKey(
        "judge.Season", on_delete=models.CASCADE, related_name="exchanges", db_index=False
    )
    hour = models.DateTimeField(db_index=True)
    giver = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="given", db_index=False)
    taker = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="taken", db_index=False)
    used = models.BigIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["season", "hour", "giver", "taker"], name="one_exchange_an_hour"
            ),
        ]
        indexes = [
            models.Index(fields=["season", "hour", "-used", "id"], name="exchange_strongest"),
            models.Index(fields=["giver", "hour"], name="exchange_by_giver"),
            models.Index(fields=["taker", "hour"], name="exchange_by_taker"),
        ]

    def __str__(self) -> str:
        return f"{self.taker} from {self.giver}: {self.used}"


class CreditSource(models.Model):
    """A web process that sends batches of credits, and the number of its last booked batch."""

    name = models.CharField(max_length=64, primary_key=True)
    number = models.BigIntegerField()
    booked_at = models.DateTimeField(auto_now=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.name} to {self.number}"


class TrainingPoint(models.Model):
    """A node's training report at one step; only one every few minutes is stored.

    `training_reward` is the mean over the node's own rollouts of the step. `reflection` maps each
    kind of phrase (recheck, hesitation, exploration) to the share of the node's own completions
    that contain one; it is empty if the client does not report it.
    """

    node = models.ForeignKey(
        Node, on_delete=models.CASCADE, related_name="training_points", db_index=False
    )
    season = models.ForeignKey(
        "judge.Season", on_delete=models.CASCADE, related_name="training_points", db_index=False
    )
    at = models.DateTimeField(db_index=True)
    step = models.BigIntegerField()
    training_reward = models.FloatField()
    informative_share = models.FloatField()
    reflection = models.JSONField[dict[str, Any]](default=dict)

    class Meta:
        indexes = [
            models.Index(fields=["node", "season", "at"], name="training_points_of_node"),
        ]

    def __str__(self) -> str:
        return f"{self.node} at step {self.step}"
