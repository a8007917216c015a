"""Flags for the operator, and the operator's rulings; neither is ever deleted."""

from django.conf import settings
from django.db import models

from judge.models.rounds import Round
from swarm_web.nodes.models import Node


class Flag(models.Model):
    """A suspicious pattern in a node's answers or scores, for the operator to review.

    A flag changes no score; the operator decides what follows. `other` is the node that gave the
    same wrong answers, null if the flag is for a score jump.
    """

    class Kind(models.TextChoices):
        """Which pattern was found."""

        COPIED = "copied", "wrong answers in common with another node, beyond chance"
        JUMPED = "jumped", "a score far above what its history allows"

    class State(models.TextChoices):
        """Whether the operator has reviewed the flag, and with what result."""

        OPEN = "open"
        DISMISSED = "dismissed"
        UPHELD = "upheld"

    kind = models.CharField(max_length=16, choices=Kind)
    round = models.ForeignKey(Round, on_delete=models.CASCADE, related_name="flags")
    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="flags")
    other = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.CASCADE, related_name="flags_as_other"
    )
    text = models.CharField(max_length=400, help_text="The finding with its figures.")
    p_adjusted = models.FloatField(help_text="After adjustment over all that were tested.")
    state = models.CharField(max_length=16, choices=State, default=State.OPEN)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "round", "node", "other"],
                name="one_flag_a_finding",
                nulls_distinct=False,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.node} in {self.round}"


class Ruling(models.Model):
    """An operator's decision with its reason; never edited or deleted."""

    class Action(models.TextChoices):
        """What the operator decided."""

        VOID = "void", "excluded a round from every score"
        RECOMPUTE = "recompute", "regraded a round's answers"
        QUARANTINE = "quarantine", "removed a node from the ranking"
        RELEASE = "release", "restored a node to the ranking"
        DISMISS = "dismiss", "dismissed a flag as harmless"

    action = models.CharField(max_length=16, choices=Action)
    round = models.ForeignKey(
        Round, null=True, blank=True, on_delete=models.PROTECT, related_name="rulings"
    )
    node = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.PROTECT, related_name="rulings"
    )
    flag = models.ForeignKey(
        Flag, null=True, blank=True, on_delete=models.SET_NULL, related_name="rulings"
    )
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT
    )
    reason = models.CharField(max_length=200)
    changes = models.JSONField(default=dict, help_text="What the decision changed, in numbers.")
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.get_action_display()}: {self.round or self.node}"
