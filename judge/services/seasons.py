"""Seasons begin, pause, resume and end."""

from datetime import datetime

from django.db import transaction

from judge.models import Round, Season
from judge.selectors import describe_season
from swarm_protocol.messages import SeasonState
from swarm_tasks.allowlist import GENERATOR
from swarm_web import bus


def start_season(season: Season, *, now: datetime) -> bool:
    """Start a drafted season, ending the one that runs; tell whether this call did it."""
    with transaction.atomic():
        for running in Season.objects.filter(state=Season.State.RUNNING):
            end_season(running, now=now)
        won = Season.objects.filter(pk=season.pk, state=Season.State.DRAFT).update(
            state=Season.State.RUNNING, started_at=now, generator=GENERATOR
        )
        if won:
            season.refresh_from_db()
            _ring(season)
    return bool(won)


def end_season(season: Season, *, now: datetime) -> bool:
    """End the running season; a round that is open is still finished."""
    with transaction.atomic():
        won = Season.objects.filter(pk=season.pk, state=Season.State.RUNNING).update(
            state=Season.State.ENDED, ended_at=now
        )
        if won:
            season.rounds.filter(phase=Round.Phase.SCHEDULED).delete()
            _ring(None)
    return bool(won)


def pause_season(season: Season) -> bool:
    """Open no new rounds until the season is resumed."""
    return _set_paused(season, to=True)


def resume_season(season: Season) -> bool:
    """Let a paused season open rounds again; a round that is overdue opens at once."""
    return _set_paused(season, to=False)


def _set_paused(season: Season, *, to: bool) -> bool:
    won = Season.objects.filter(pk=season.pk, paused=not to).update(paused=to)
    bus.ring(bus.VIEWERS)
    return bool(won)


def _ring(season: Season | None) -> None:
    told = describe_season(season) if season else None
    bus.ring_nodes(SeasonState(reply_to=None, season=told))
    bus.ring(bus.VIEWERS)
