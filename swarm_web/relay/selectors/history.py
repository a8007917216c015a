"""Exchanges between nodes, and the course of a node's training."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Sum

from swarm_web.nodes.models import Node
from swarm_web.relay.models import Exchange, TrainingPoint


@dataclass(frozen=True)
class Flow:
    """The names of two nodes, and how many rollouts of `giver` the `taker` trained on (`used`)."""

    giver: str
    taker: str
    used: int


@dataclass(frozen=True)
class Peer:
    """A node's name, and how many rollouts it exchanged with another node (`used`).

    From `taken_from`, these are rollouts that it gave; from `given_to`, rollouts that it used.
    """

    node: str
    used: int


def exchanges_in(season_id: int, *, hour: datetime, limit: int) -> list[Flow]:
    """Return the flows with the most rollouts in the hour that contains `hour`, largest first."""
    flows = Exchange.objects.filter(season=season_id, hour=_hour_of(hour)).order_by("-used", "pk")
    named = flows.values_list("giver__name", "taker__name", "used")
    return [Flow(giver, taker, used) for giver, taker, used in named[:limit]]


def taken_from(node: Node, *, season_id: int, since: datetime, limit: int) -> list[Peer]:
    """Return the nodes whose rollouts a node used, most used first.

    Uses count from the start of the clock hour that contains `since`.
    """
    return _peers(node.taken.all(), season_id, since, name="giver__name", limit=limit)


def given_to(node: Node, *, season_id: int, since: datetime, limit: int) -> list[Peer]:
    """Return the nodes that used a node's rollouts, most uses first.

    Uses count from the start of the clock hour that contains `since`.
    """
    return _peers(node.given.all(), season_id, since, name="taker__name", limit=limit)


def training_points(node: Node, *, season_id: int, limit: int) -> list[TrainingPoint]:
    """Return a node's latest training points in a season, at most `limit`, oldest first."""
    points = TrainingPoint.objects.filter(node=node, season=season_id).order_by("-at")
    return list(points[:limit])[::-1]


def _peers(
    exchanges: QuerySet[Exchange], season_id: int, since: datetime, *, name: str, limit: int
) -> list[Peer]:
    peers = (
        exchanges.filter(season=season_id, hour__gte=_hour_of(since))
        .values_list(name)
        .annotate(total=Sum("used"))
        .order_by("-total", name)
    )
    return [Peer(node, used) for node, used in peers[:limit]]


def _hour_of(moment: datetime) -> datetime:
    return moment.replace(minute=0, second=0, microsecond=0)
