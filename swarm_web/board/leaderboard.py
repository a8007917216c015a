"""The leaderboard: the judge's standings joined with nodes and their contributions.

Pages, API, live socket and the node's terminal panel all read these rows, so they agree.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils.translation import gettext

from judge.models import Season, Standing, Window
from judge.selectors.scores import counted_rounds, standings_in
from swarm_record.stats import Interval
from swarm_web.core.keyset import Keyset
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution

PAGE_ROWS = 50
WAITING_NAMES = 20
_ORDER = Keyset("place")
_COMPETING = (Standing.Remark.NONE, Standing.Remark.TOO_FEW, Standing.Remark.OFTEN_ABSENT)
_UNTRAINED = (Standing.Remark.BASE,)


@dataclass(frozen=True)
class Filters:
    """Which nodes a leaderboard lists; empty values match all.

    `owner` is the name of an active account with a public profile; other names match no node.
    `search` is a part of the node's name. If `arm` is `base`, the rows are the untrained models;
    otherwise the untrained models are in `Leaderboard.base`.
    """

    model: str = ""
    arm: str = ""
    owner: str = ""
    search: str = ""

    def __bool__(self) -> bool:
        """Whether anything is filtered."""
        return any((self.model, self.arm, self.owner, self.search))


NO_FILTERS = Filters()


@dataclass(frozen=True)
class LeaderboardRow:
    """One node's row in one window; `score` and `interval` are in [0, 1] over `n` questions.

    `rank` is (best, worst). It is None for all nodes in a window without ranks, and for a node that
    is not ranked for the reason `remark` (Standing.Remark). `recent_score` is the node's score in
    the window "recent", None if it has none. The node was scored in `rounds` rounds, and missed
    `missed` rounds to which it was invited. `cells` maps each dataset to (correct, n). In the whole
    season, the node trained on `external_used` rollouts of other nodes, and other nodes trained
    `used_by_others` times on its rollouts. `title` is empty if the owner gave none.
    """

    rank: tuple[int, int] | None
    remark: str
    node: str
    title: str
    model: str
    parameters: int
    arm: str
    score: float
    interval: Interval
    recent_score: float | None
    n: int
    rounds: int
    missed: int
    cells: dict[str, tuple[int, int]]
    external_used: int
    used_by_others: int
    last_seen: datetime | None
    connected: bool

    @property
    def why_unranked(self) -> str:
        """The reason why there is no rank, in words; empty for a ranked node."""
        if self.remark:
            return str(Standing.Remark(self.remark).label)
        return "" if self.rank else gettext("ranks compare nodes over the whole season")

    @property
    def is_base(self) -> bool:
        """Whether this is an untrained model, shown for comparison."""
        return self.remark == Standing.Remark.BASE


@dataclass(frozen=True)
class BoardTotals:
    """Totals of a leaderboard over a window, not of one page. Only `listed` depends on the filters.

    `listed` is the number of rows on all pages. `leading` is the number of nodes whose best rank is
    1, and `leader` is the name of the first of these nodes. In a window without ranks, `leading` is
    0 and `leader` is empty, but `ranked` counts the nodes without a remark. `rounds` is the number
    of rounds in the window.
    """

    leader: str = ""
    listed: int = 0
    ranked: int = 0
    leading: int = 0
    quarantined: int = 0
    rounds: int = 0


@dataclass(frozen=True)
class Leaderboard:
    """A page of a season's ranking over a window, read at `as_of`.

    The page begins after the standing at place `after`; `earlier` and `later` are the values of
    `after` for the neighbouring pages, None if there is none. `base` has the row of an untrained
    node for each model on the page. If there are no filters and only one page, `base` also has a
    row for each other model with an untrained node. `base` has at most PAGE_ROWS rows, or as many
    as the page may have if these are more. It is empty if the filters select the untrained nodes.

    `recent_rounds` is the number of rounds of the window "recent". A rank requires
    `minimum_questions` questions and an attendance of `minimum_attendance` percent. `waiting` has
    the names of up to WAITING_NAMES connected nodes that are not quarantined and have no standing
    in the season. `more_waiting` says whether there are more.
    """

    season: str
    window: str
    as_of: datetime
    recent_rounds: int
    minimum_questions: int
    minimum_attendance: int
    rows: list[LeaderboardRow]
    base: list[LeaderboardRow]
    waiting: list[str]
    totals: BoardTotals = BoardTotals()
    more_waiting: bool = False
    filters: Filters = NO_FILTERS
    after: int = 0
    earlier: int | None = None
    later: int | None = None

    @property
    def quarantined(self) -> int:
        """Number of the window's nodes that are not listed because they are quarantined."""
        return self.totals.quarantined


def read_leaderboard(
    season: Season,
    *,
    window: str,
    now: datetime,
    filters: Filters = NO_FILTERS,
    after: int = 0,
    limit: int = PAGE_ROWS,
) -> Leaderboard:
    """Return a page of at most `limit` rows of a leaderboard, in a constant number of queries.

    To read all rows, start with `after=0`. For the next page, pass `later` of the page before as
    `after`, with the same filters. The last page's `later` is None.
    """
    listed = _filter(_list_standings(season, window, filters), filters)
    page = _ORDER.read(listed, after=(after,), limit=limit)
    is_complete = not filters and after == 0 and page.next is None
    models = None if is_complete else {standing.model for standing in page.rows}
    bases: list[LeaderboardRow] = []
    if filters.arm != Node.Arm.BASE:
        bases = _read_bases(season, window, models, limit=max(limit, PAGE_ROWS), now=now)
    waiting = _read_waiting(season, now=now)
    return Leaderboard(
        season=season.name,
        window=window,
        as_of=now,
        recent_rounds=season.recent_rounds,
        minimum_questions=season.minimum_questions,
        minimum_attendance=season.minimum_attendance,
        rows=_make_rows(season, page.rows, _read_contributions(season, page.rows), now=now),
        base=bases,
        waiting=waiting[:WAITING_NAMES],
        totals=_count(season, window, listed if filters else None),
        more_waiting=len(waiting) > WAITING_NAMES,
        filters=filters,
        after=after,
        earlier=_find_earlier(listed, after, limit=limit) if after else None,
        later=page.next[0] if page.next else None,
    )


def find_page(
    standing: Standing, *, filters: Filters = NO_FILTERS, limit: int = PAGE_ROWS
) -> int | None:
    """Return the `after` value of the page that lists a standing; None if no page lists it."""
    listed = _filter(_list_standings(standing.season, standing.window, filters), filters)
    if not listed.filter(pk=standing.pk).exists():
        return None
    before = listed.filter(place__lt=standing.place).count()
    first = before // limit * limit
    return listed.values_list("place", flat=True)[first - 1] if first else 0


def _list_standings(season: Season, window: str, filters: Filters) -> QuerySet[Standing]:
    """Return the standings that pages list: competing nodes, or untrained models if requested."""
    kinds = _UNTRAINED if filters.arm == Node.Arm.BASE else _COMPETING
    return standings_in(season, window).filter(remark__in=kinds)


def _filter(standings: QuerySet[Standing], filters: Filters) -> QuerySet[Standing]:
    if filters.model:
        standings = standings.filter(model=filters.model)
    if filters.arm:
        standings = standings.filter(arm=filters.arm)
    if filters.owner:
        # Only accounts with a public profile can be found: names of accounts are easy to guess.
        standings = standings.filter(
            node__owner__username=filters.owner,
            node__owner__is_active=True,
            node__owner__profile__is_public=True,
        )
    if filters.search:
        standings = standings.filter(node__name__icontains=filters.search)
    return standings


def _find_earlier(listed: QuerySet[Standing], after: int, *, limit: int) -> int | None:
    """Return `Leaderboard.earlier` for the page that begins after place `after`."""
    earlier = _ORDER.find_earlier(listed, (after,), limit=limit)
    return None if earlier is None else next(iter(earlier), 0)


def _count(season: Season, window: str, listed: QuerySet[Standing] | None) -> BoardTotals:
    """Return a window's totals. `listed` are the filtered standings, None without filters.

    The filters change only the total `listed`.
    """
    standings = Standing.objects.filter(season=season, window=window)
    counts = standings.aggregate(
        listed=Count("pk", filter=Q(remark__in=_COMPETING)),
        ranked=Count("pk", filter=Q(remark=Standing.Remark.NONE)),
        leading=Count("pk", filter=Q(rank_low=1)),
        quarantined=Count("pk", filter=Q(remark=Standing.Remark.QUARANTINED)),
    )
    first = standings.filter(place=1, rank_low=1).values_list("node__name", flat=True).first()
    if listed is not None:
        counts["listed"] = listed.count()
    return BoardTotals(
        **counts,
        leader=first or "",
        rounds=counted_rounds(season, window),
    )


def _read_bases(
    season: Season, window: str, models: Collection[str] | None, *, limit: int, now: datetime
) -> list[LeaderboardRow]:
    """Return a row of an untrained node for each of `models`; at most `limit` rows.

    If `models` is None, this includes all models. If a model has several untrained nodes, the row
    is that of the node with the most questions.
    """
    bases = standings_in(season, window).filter(remark=Standing.Remark.BASE)
    if models is not None:
        bases = bases.filter(model__in=models)
    each = list(bases.order_by("model", "-n", "place").distinct("model")[:limit])
    return _make_rows(season, each, {}, now=now)


def _read_waiting(season: Season, *, now: datetime) -> list[str]:
    """Return the names of connected nodes that the season never judged, except quarantined ones.

    At most WAITING_NAMES + 1, so that the caller sees whether there are more than it shows.
    """
    judged = Standing.objects.filter(season=season, window=Window.SEASON, node=OuterRef("pk"))
    waiting = Node.objects.connected(now=now).filter(~Exists(judged), quarantined=False)
    return list(waiting.values_list("name", flat=True)[: WAITING_NAMES + 1])


def read_row(
    node: Node,
    *,
    season: Season,
    window: str,
    now: datetime,
    contribution: Contribution | None = None,
) -> LeaderboardRow | None:
    """Return a node's row, even if the node is quarantined; None without a standing in the window.

    `contribution` is the node's contribution to the season. A caller that has it passes it to save
    a query.
    """
    standing = standings_in(season, window).filter(node=node).first()
    if standing is None:
        return None
    known = {node.pk: contribution} if contribution else _read_contributions(season, [standing])
    return _make_rows(season, [standing], known, now=now)[0]


def read_base(model: str, *, season: Season, window: str, now: datetime) -> list[LeaderboardRow]:
    """Return the rows of a model's untrained nodes; their counts of rollouts are 0."""
    standings = list(standings_in(season, window).filter(remark=Standing.Remark.BASE, model=model))
    return _make_rows(season, standings, {}, now=now)


def count_ranked(season: Season) -> int:
    """Return the number of nodes that have a rank. Only the window `season` has ranks."""
    return standings_in(season, Window.SEASON).filter(remark=Standing.Remark.NONE).count()


def _read_contributions(season: Season, standings: Sequence[Standing]) -> dict[int, Contribution]:
    """Return the contributions of the standings' nodes to the season, by node id.

    Only the counts `external_used` and `used_by_others` are loaded.
    """
    nodes = [standing.node_id for standing in standings]
    rows = Contribution.objects.filter(season=season, node__in=nodes)
    counted = rows.only("node_id", "external_used", "used_by_others")
    return {contribution.node_id: contribution for contribution in counted}


def _make_rows(
    season: Season,
    standings: Sequence[Standing],
    contributions: Mapping[int, Contribution],
    *,
    now: datetime,
) -> list[LeaderboardRow]:
    """Return a row for each of `standings`, in their order.

    `contributions` are by node id; nodes without one exchanged no rollouts.
    """
    nodes = [standing.node_id for standing in standings]
    recent = Standing.objects.filter(season=season, window=Window.RECENT, node__in=nodes)
    scores = dict(recent.values_list("node_id", "score"))
    return [
        _make_row(each, contributions.get(each.node_id), scores.get(each.node_id), now=now)
        for each in standings
    ]


def _make_row(
    standing: Standing,
    contribution: Contribution | None,
    recent_score: float | None,
    *,
    now: datetime,
) -> LeaderboardRow:
    return LeaderboardRow(
        rank=_rank(standing),
        remark=standing.remark,
        node=standing.node.name,
        title=standing.node.title,
        model=standing.model,
        parameters=standing.node.parameters,
        arm=standing.arm,
        score=standing.score,
        interval=(standing.interval_low, standing.interval_high),
        recent_score=recent_score,
        n=standing.n,
        rounds=standing.rounds,
        missed=standing.missed,
        cells={dataset: (cell[0], cell[1]) for dataset, cell in standing.cells.items()},
        external_used=contribution.external_used if contribution else 0,
        used_by_others=contribution.used_by_others if contribution else 0,
        last_seen=standing.node.last_seen,
        connected=standing.node.is_connected(now=now),
    )


def _rank(standing: Standing) -> tuple[int, int] | None:
    if standing.rank_low is None or standing.rank_high is None:
        return None
    return standing.rank_low, standing.rank_high
