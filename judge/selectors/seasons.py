"""Queries for seasons, for their rules, and for how their arms were assigned."""

import msgspec
from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from judge.engine import Phase
from judge.models import (
    Counted,
    Enrolment,
    Round,
    Season,
    Window,
)
from swarm_protocol.messages import SeasonInfo, TaskChoice
from swarm_web.nodes.models import Node


def running_season() -> Season | None:
    """Return the season that runs now, paused or not; None if none does."""
    return Season.objects.filter(state=Season.State.RUNNING).first()


def shown_season() -> Season | None:
    """Return the season that pages show: the running one, else the last one started, else None."""
    started = Season.objects.exclude(state=Season.State.DRAFT)
    return running_season() or started.order_by("-started_at").first()


def started_seasons() -> QuerySet[Season]:
    """Return the seasons that have started, newest first."""
    return Season.objects.exclude(state=Season.State.DRAFT).order_by("-started_at", "-pk")


def seasons_to_refresh() -> QuerySet[Season]:
    """Return the seasons whose standings may have to change.

    There are three kinds:

    - the running season
    - seasons with a round that the window `24h` or `7d` counts: it leaves the window in time
    - seasons with a closed round that the ledgers do not include yet, for example after an update
      of the site
    """
    counted = Counted.objects.filter(round=OuterRef("pk"), window=Window.SEASON)
    closed = Round.objects.filter(season=OuterRef("pk"), phase=Phase.CLOSED)
    has_new = Exists(closed.filter(~Exists(counted)))
    has_recent = Exists(
        Counted.objects.filter(round__season=OuterRef("pk"), window__in=[Window.DAY, Window.WEEK])
    )
    started = Season.objects.exclude(state=Season.State.DRAFT)
    return started.filter(Q(state=Season.State.RUNNING) | has_new | has_recent)


def minimum_client(season: Season | None) -> str:
    """Return the oldest client version that is accepted: the season's minimum, else the site's."""
    return (season.minimum_client if season else "") or str(settings.MINIMUM_CLIENT_VERSION)


def task_choices(tasks: object) -> list[TaskChoice]:
    """Return the task mix decoded from `Season.tasks`.

    Raises msgspec.ValidationError if `tasks` does not have this form.
    """
    return msgspec.convert(tasks, list[TaskChoice])


def describe_season(season: Season) -> SeasonInfo:
    """Return a season's rules as a message for nodes."""
    rules = msgspec.convert(season, SeasonInfo, from_attributes=True)
    return msgspec.structs.replace(rules, answers=season.answer_rules)


def coin_share(season: Season) -> tuple[int, int]:
    """Return two counts of a season's nodes: those whose arm was drawn by coin, and all nodes.

    Nodes of the arm `base` are left out of both.
    """
    enrolled = Enrolment.objects.filter(season=season).exclude(arm=Node.Arm.BASE)
    counts = enrolled.aggregate(
        coin=Count("pk", filter=Q(assignment=Season.Assignment.COIN)), everybody=Count("pk")
    )
    return counts["coin"], counts["everybody"]
