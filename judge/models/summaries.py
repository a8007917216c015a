"""What each closed round showed, in a few numbers, so that no list of rounds adds up scores."""

from django.db import models
from django.db.models import Q

from judge.models.rounds import Round


class RoundSummary(models.Model):
    """`judge.summaries.Summary` of a closed round, and how many seats it had.

    It follows from the round's scores and from who is quarantined, and is written with the scores.
    A `stale` one is from before a node's quarantine or release, and is about to be rebuilt.
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
    groups = models.JSONField(help_text="judge.summaries.Group by model and arm.")
    datasets = models.JSONField(default=dict, help_text="By arm and dataset: [correct, n].")
    stale = models.BooleanField(default=False)

    class Meta:
        indexes = [
            models.Index(fields=["round"], condition=Q(stale=True), name="stale_summaries"),
        ]

    def __str__(self) -> str:
        return f"summary of {self.round}"
