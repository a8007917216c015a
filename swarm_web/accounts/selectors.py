"""Reads about nodes for account pages and owners' profiles."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import OuterRef, QuerySet, Subquery

from judge.models import Score, Season, Standing, Window
from judge.selectors.seasons import minimum_client, shown_season
from swarm_web.nodes.models import Node
from swarm_web.notifications.rules import is_outdated
from swarm_web.relay.models import Contribution


@dataclass(frozen=True)
class OwnNode:
    """A node for its owner's account page and public profile.

    `score` is the score in the newest round in which the node was scored. `standing` is the node's
    row on the leaderboard of the season that pages show. `needed` is the minimum client version if
    the node's client is older, otherwise empty.
    """

    node: Node
    connected: bool
    score: Score | None
    standing: Standing | None
    needed: str

    @property
    def rank(self) -> tuple[int, int] | None:
        """The best and the worst rank of the node in `standing`; None if it has no rank."""
        return _rank_of(self.standing)


@dataclass(frozen=True)
class SeasonPart:
    """What a node did in a season. `standing` or `contribution` may be None, but not both."""

    node: Node
    season: Season
    standing: Standing | None
    contribution: Contribution | None

    @property
    def rank(self) -> tuple[int, int] | None:
        """The best and the worst rank of the node in `standing`; None if it has no rank."""
        return _rank_of(self.standing)


def read_own_nodes(user: User, *, now: datetime) -> list[OwnNode]:
    """Return an account's nodes, sorted by name, in a constant number of queries."""
    nodes = list(Node.objects.filter(owner=user))
    season = shown_season()
    minimum = minimum_client(season)
    scores = _newest_scores(nodes)
    standings = {s.node_id: s for s in _standings(nodes).filter(season=season)}
    return [
        OwnNode(
            node=node,
            connected=node.is_connected(now=now),
            score=scores.get(node.pk),
            standing=standings.get(node.pk),
            needed=minimum if is_outdated(node.client_version, minimum=minimum) else "",
        )
        for node in nodes
    ]


def read_seasons(nodes: Iterable[Node]) -> list[SeasonPart]:
    """Return what these nodes did in all seasons, in three queries.

    There is one part for each node and each season in which it has a standing or a contribution.
    The parts of the season that was created last come first. Within a season, parts are sorted by
    the nodes' names.
    """
    by_key = {node.pk: node for node in nodes}
    standings = {(s.node_id, s.season_id): s for s in _standings(by_key.values())}
    contributions = Contribution.objects.filter(node__in=by_key)
    by_season = {(part.node_id, part.season_id): part for part in contributions}
    keys = {*standings, *by_season}
    seasons = Season.objects.in_bulk({season for _, season in keys})
    season_parts = [
        SeasonPart(by_key[node], seasons[season], standings.get(key), by_season.get(key))
        for key in keys
        for node, season in [key]
    ]
    return sorted(season_parts, key=lambda part: (-part.season.pk, part.node.name))


def find_public_owner(username: str) -> User | None:
    """Return the active account of this name that has a public profile, otherwise None."""
    return User.objects.filter(username=username, is_active=True, profile__is_public=True).first()


def public_owner_of(node: Node) -> str:
    """Return the user name of a node's owner, or an empty string.

    It is empty if the node has no owner, or the owner's account is inactive or has no public
    profile.
    """
    if node.owner_id is None:
        return ""
    owners = User.objects.filter(pk=node.owner_id, is_active=True, profile__is_public=True)
    return owners.values_list("username", flat=True).first() or ""


def _newest_scores(nodes: Iterable[Node]) -> dict[int, Score]:
    """Return each node's score in its newest scored round, by node id."""
    scored = Score.objects.filter(node=OuterRef("pk"), status=Score.Status.SCORED)
    newest = Subquery(scored.order_by("-round_id").values("pk")[:1])
    ids = Node.objects.filter(pk__in=[node.pk for node in nodes]).values(newest=newest)
    scores = Score.objects.filter(pk__in=ids).select_related("round")
    # Large columns that are not needed here.
    deferred = ("answered", "solved", "round__rules", "round__secret")
    return {score.node_id: score for score in scores.defer(*deferred)}


def _standings(nodes: Iterable[Node]) -> QuerySet[Standing]:
    """Return the nodes' standings whose window is a whole season."""
    return Standing.objects.filter(node__in=nodes, window=Window.SEASON)


def _rank_of(standing: Standing | None) -> tuple[int, int] | None:
    """Return the best and the worst rank of a standing; None if either is missing."""
    if standing is None or standing.rank_low is None or standing.rank_high is None:
        return None
    return standing.rank_low, standing.rank_high
