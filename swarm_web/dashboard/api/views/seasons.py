"""Seasons that have started."""

from typing import Any

from django.http import HttpRequest
from ninja import Router

from judge.models import Season
from swarm_web.dashboard.api.paging import Cursor, Limit, Number, read_cursor, read_page
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.seasons import SeasonsOut

router = Router(tags=["seasons"])

# What is copied as it is.
_SEASON = (
    *("state", "paused", "started_at", "ended_at", "tasks", "seed", "generator"),
    *(
        "questions_per_round",
        "minimum_questions",
        "minimum_attendance",
        "completions",
        "local",
        "external",
        "assignment",
    ),
    *("isolated_publish", "batch", "sampling", "answer_rules", "public_beacon", "halt_reason"),
)


@read(router, "/seasons", SeasonsOut)
def list_seasons(request: HttpRequest, cursor: Cursor = "", limit: Limit = 100) -> dict[str, Any]:
    """List seasons that have started, newest first, with the rules that nodes are told."""
    seasons = Season.objects.exclude(state=Season.State.DRAFT).order_by("-pk")
    if (before := read_cursor(cursor, tuple[Number])) is not None:
        seasons = seasons.filter(pk__lt=before[0])
    return read_page(
        seasons, limit=limit, key=lambda season: [season.pk], describe=_describe_season
    )


def _describe_season(season: Season) -> dict[str, Any]:
    return {"season": season.name, **{name: getattr(season, name) for name in _SEASON}}
