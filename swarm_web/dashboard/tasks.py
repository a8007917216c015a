"""Celery tasks of the dashboard."""

from celery import shared_task
from django.utils import timezone

from judge.selectors.seasons import shown_season
from swarm_web.board.pace import sample_totals


@shared_task
def sample_pace() -> None:
    """Store a sample: the totals of rollouts delivered and used in the season that pages show.

    The home page computes its rates from two samples (`board.pace`). Does nothing before the
    first season.
    """
    season = shown_season()
    if season is not None:
        sample_totals(season.pk, now=timezone.now())
