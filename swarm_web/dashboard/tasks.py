"""Celery tasks of the pages."""

from celery import shared_task
from django.utils import timezone

from judge.selectors.seasons import shown_season
from swarm_web.board.pace import sample_totals


@shared_task
def sample_pace() -> None:
    """Store a sample of the season's totals, from which the home page's rates are measured."""
    season = shown_season()
    if season is not None:
        sample_totals(season.pk, now=timezone.now())
