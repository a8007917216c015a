"""Which rounds each window of the leaderboard counts, and which enter or leave it."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from judge.engine import Phase
from judge.models import Counted, Round, Season, Window

_SPANS = {Window.DAY: timedelta(hours=24), Window.WEEK: timedelta(days=7)}


@dataclass(frozen=True)
class Change:
    """The rounds that a window counts from now on, and those that it counts no more."""

    entering: list[Round]
    leaving: list[Round]


def plan_changes(
    season: Season, *, now: datetime, excluding: Collection[int]
) -> dict[Window, Change]:
    """Return the windows whose rounds are no longer those that are counted, with what changes."""
    changes = {}
    for window in Window:
        wanted = _belonging(season, window, now=now).exclude(pk__in=excluding)
        counted = Round.objects.filter(
            Exists(Counted.objects.filter(round=OuterRef("pk"), window=window)), season=season
        )
        entering = list(wanted.exclude(pk__in=counted.values("pk")).order_by("number"))
        leaving = list(counted.exclude(pk__in=wanted.values("pk")).order_by("number"))
        if entering or leaving:
            changes[window] = Change(entering, leaving)
    return changes


def _belonging(season: Season, window: Window, *, now: datetime) -> QuerySet[Round]:
    """Return the rounds that belong to a window now."""
    closed = Round.objects.filter(season=season, phase=Phase.CLOSED)
    if window in _SPANS:
        return closed.filter(closed_at__gt=now - _SPANS[window])
    if window == Window.SEASON:
        return closed
    latest = closed.order_by("-number").values_list("pk", flat=True)
    count = 1 if window == Window.ROUND else season.recent_rounds
    return closed.filter(pk__in=list(latest[:count]))


def is_older_than_counted(rounds: Collection[Round]) -> bool:
    """Tell whether one of these rounds of a season is older than another that counts."""
    numbers = [judge_round.number for judge_round in rounds]
    season = next(iter(rounds)).season_id
    newer = Round.objects.filter(season=season, number__gt=min(numbers)).exclude(number__in=numbers)
    return newer.filter(counted__window=Window.SEASON).exists()


def note_counted(window: Window, change: Change) -> None:
    """Note which rounds the window counts now."""
    Counted.objects.filter(window=window, round__in=change.leaving).delete()
    Counted.objects.bulk_create(Counted(window=window, round=r) for r in change.entering)
