"""What each closed round showed, in a few numbers, so that no list of rounds adds up scores."""

from django.db import models

from judge.models.rounds import Round


class RoundSummary(models.Model):
    """`judge.summaries.Summary` of a closed round, and how many seats it had.

    It follows from the round's scores, is written with them and can be rebuilt.
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

    def __str__(self) -> str:
        return f"summary of {self.round}"
