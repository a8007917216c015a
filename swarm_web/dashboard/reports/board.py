"""The leaderboard as pages show it: its lines, their history, and the search for a node."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import chain
from math import hypot
from types import MappingProxyType
from urllib.parse import urlencode

from django.db.models import Count
from django.utils.translation import gettext as _

from judge.models import Score, Season, Standing, Window
from judge.selectors.scores import recent_scores, score_history, standings_edition, standings_in
from judge.selectors.seasons import shown_season
from swarm_record.stats import Interval
from swarm_web.board.leaderboard import (
    NO_FILTERS,
    PAGE_ROWS,
    WAITING_NAMES,
    Filters,
    Leaderboard,
    LeaderboardRow,
    find_page,
    read_leaderboard,
)
from swarm_web.core.errors import RequestError, check_choice
from swarm_web.core.keyset import decode_numbers, encode_numbers
from swarm_web.dashboard.charts.parts import Figure
from swarm_web.dashboard.charts.scores import ScorePoint, draw_leaders
from swarm_web.edge.brief_cache import keep_briefly
from swarm_web.nodes.models import Node

# Possible ends of the scale on which a page draws its scores, as fractions of one.
_SCALE_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
_NOTHING: Mapping[str, Sequence[float]] = MappingProxyType({})
# Number of lines in a chart that a reader can tell apart, and of rounds that fit in it.
CHARTED_NODES = 5
CHARTED_ROUNDS = 60
# Number of rounds in a sparkline: enough to show a trend in the width of a column.
SPARK_ROUNDS = 20
# Number of models that the filter suggests; others can be typed.
COMMON_MODELS = 20
_FILTERS = ("model", "arm", "owner", "search")


# ---- lines


@dataclass(frozen=True)
class Lift:
    """A node's score minus the score of the same model untrained, in [-1, 1].

    `interval` is the 95 % interval of the difference; `base` is the row of the untrained node.
    """

    difference: float
    interval: Interval
    base: LeaderboardRow


class WithLift:
    """Base class of reports with a `lift`, which compares a node with its model untrained."""

    lift: Lift | None

    @property
    def over_base(self) -> float | None:
        """The node's score minus the score of its model untrained; None without a `lift`."""
        return self.lift.difference if self.lift else None

    @property
    def over_base_interval(self) -> Interval | None:
        """The 95 % interval of `over_base`; None without a `lift`."""
        return self.lift.interval if self.lift else None


@dataclass(frozen=True)
class BoardLine(WithLift):
    """A row of the leaderboard with what pages add to it.

    `lift` compares the node with the same model untrained. It is None for an untrained node, and if
    the board has no untrained node of the model. `recent` are the node's scores in the season's
    last rounds, in [0, 1], oldest first. `took_part` is the share of the window's rounds that the
    node was scored in; None while the window has no round. Scores are drawn on a scale from 0 to
    `scale_end`, which all lines of a page share.
    """

    row: LeaderboardRow
    lift: Lift | None = None
    recent: Sequence[float] = ()
    took_part: float | None = None
    scale_end: float = 1.0


def make_lines(
    board: Leaderboard, *, recent: Mapping[str, Sequence[float]] = _NOTHING
) -> list[BoardLine]:
    """Return a page's lines, best first; an untrained node follows the best node of its model.

    Untrained nodes of models without a trained node on the page come last. `recent` maps a node's
    name to its scores in the season's last rounds, oldest first.
    """
    waiting: defaultdict[str, list[LeaderboardRow]] = defaultdict(list)
    for row in board.base:
        waiting[row.model].append(row)
    by_model = {model: tuple(rows) for model, rows in waiting.items()}
    rounds = board.totals.rounds
    end = choose_scale_end((*board.rows, *board.base), recent)

    def describe(row: LeaderboardRow) -> BoardLine:
        lift = None if row.is_base else measure_lift(row, by_model.get(row.model, ()))
        took_part = min(1.0, row.rounds / rounds) if rounds else None
        return BoardLine(row, lift, recent.get(row.node, ()), took_part, end)

    lines: list[BoardLine] = []
    for row in board.rows:
        lines.append(describe(row))
        lines += [describe(base) for base in waiting.pop(row.model, [])]
    return lines + [describe(base) for rows in waiting.values() for base in rows]


def list_trained(board: Leaderboard) -> list[BoardLine]:
    """Return the lines of `board.rows` only, without the lines of `board.base`."""
    listed = {row.node for row in board.rows}
    return [line for line in make_lines(board) if line.row.node in listed]


def choose_scale_end(
    rows: Sequence[LeaderboardRow], recent: Mapping[str, Sequence[float]]
) -> float:
    """Return the end of the scale on which a page draws its scores.

    It is the smallest of _SCALE_ENDS that covers the intervals of all `rows` and all `recent`
    scores, or 1 if there are neither rows nor scores. Early in a season all scores can be below
    .05; a scale up to 1 would then show no differences.
    """
    highest = max(chain((row.interval[1] for row in rows), *recent.values()), default=1.0)
    return next((end for end in _SCALE_ENDS if end >= highest), 1.0)


def measure_lift(row: LeaderboardRow, bases: Sequence[LeaderboardRow]) -> Lift | None:
    """Compare a row with the row of `bases` that has the most questions; None without `bases`.

    `bases` are rows of untrained nodes of the same model. The interval of the difference combines
    the intervals of both rows (R. G. Newcombe, Statistics in Medicine 17, 1998, method 10), which
    assumes independent samples. In rounds that both nodes took part in, they answered the same
    questions, so the true interval is narrower.
    """
    if not bases:
        return None
    base = max(bases, key=lambda candidate: candidate.n)
    difference = row.score - base.score
    (low, high), (base_low, base_high) = row.interval, base.interval
    below = hypot(row.score - low, base_high - base.score)
    above = hypot(high - row.score, base.score - base_low)
    return Lift(difference, (difference - below, difference + above), base)


# ---- pages


@dataclass(frozen=True)
class BoardQuery:
    """The parsed query string of the leaderboard's page.

    The page begins after the standing at place `after`: places count from 1 in the order of the
    leaderboard, and 0 gives the first page. `find` is the name of a node to look for, or empty.
    """

    window: str = "season"
    filters: Filters = NO_FILTERS
    after: int = 0
    find: str = ""

    def encode(self) -> str:
        """Return the page's query string, without `find`, for its live socket and its figure."""
        parts = {"view": "board", "window": self.window, **asdict(self.filters)}
        parts["after"] = encode_numbers(self.after) if self.after else ""
        return urlencode({name: value for name, value in parts.items() if value})


FIRST_PAGE = BoardQuery()


@dataclass(frozen=True)
class Chart:
    """The scores of the leading nodes over rounds, for a figure and the table beside it.

    `order` lists the names of the nodes: the leader first, and last an untrained node, if the chart
    has one. `rows` are the scores, newest round first.
    """

    order: list[str]
    rows: list[Score]

    @property
    def figure(self) -> Figure:
        """The figure; each access draws it again. Empty if there are no nodes.

        A page contains only the table of the scores. The page's script fetches the figure later.
        """
        points = [
            ScorePoint(node=s.node.name, arm=s.arm, round=s.round.number, cells=s.cells)
            for s in self.rows[::-1]
            if s.cells
        ]
        charted = {point.node for point in points}
        order = [node for node in self.order if node in charted]
        return draw_leaders(points, order=order) if self.order else {}


def read_window(text: str | None) -> str:
    """Return the window that a query string names, by default `season`.

    Raises RequestError for an unknown window.
    """
    window = text or "season"
    check_choice("window", window, Window.values)
    return window


def read_query(params: Mapping[str, str]) -> BoardQuery:
    """Return the parsed query string of the leaderboard's page.

    Raises RequestError for an unknown arm or window, and if `after` is not a number.
    """
    filters = Filters(**{name: params.get(name, "").strip()[:200] for name in _FILTERS})
    check_choice("arm", filters.arm, ["", *Node.Arm.values])
    try:
        (after,) = decode_numbers(params.get("after") or "0")
    except ValueError as problem:
        raise RequestError(
            "query.after",
            f"There is no page after {params['after'][:40]!r}.",
            fix="Leave it out for the first page, and follow the page's own links from there.",
        ) from problem
    find = params.get("find", "").strip()[:64]
    return BoardQuery(read_window(params.get("window")), filters, after, find)


def read_board(
    window: str,
    *,
    now: datetime,
    filters: Filters = NO_FILTERS,
    after: int = 0,
    limit: int = PAGE_ROWS,
) -> Leaderboard:
    """Return a page of the leaderboard of the shown season (`shown_season`).

    The page begins after the standing at place `after`; 0 gives the first page. Before the first
    season the page has no rows.
    """
    season = shown_season()
    if season is not None:
        return read_leaderboard(
            season, window=window, now=now, filters=filters, after=after, limit=limit
        )
    draft = Season()
    waiting = Node.objects.connected(now=now).values_list("name", flat=True)[: WAITING_NAMES + 1]
    return Leaderboard(
        season="",
        window=window,
        as_of=now,
        recent_rounds=draft.recent_rounds,
        minimum_questions=draft.minimum_questions,
        minimum_attendance=draft.minimum_attendance,
        rows=[],
        base=[],
        waiting=list(waiting[:WAITING_NAMES]),
        more_waiting=len(waiting) > WAITING_NAMES,
        filters=filters,
    )


def read_edition(window: str) -> int:
    """Return a number that changes whenever the shown season's standings of a window are rewritten.

    It is 0 without standings.
    """
    season = shown_season()
    return standings_edition(season, window) if season else 0


def read_lines(board: Leaderboard) -> list[BoardLine]:
    """Return the page's lines, with each node's scores in the season's last SPARK_ROUNDS rounds.

    Makes at most two queries.
    """
    season = Season.objects.filter(name=board.season).first()
    names = [row.node for row in (*board.rows, *board.base)]
    recent = recent_scores(season, names, rounds=SPARK_ROUNDS) if season and names else {}
    return make_lines(board, recent=recent)


def common_models(board: Leaderboard) -> list[str]:
    """Return the models with the most nodes in the board's window, most nodes first.

    Returns at most COMMON_MODELS models. The result is cached (`keep_briefly`).
    """
    judged = Standing.objects.filter(season__name=board.season, window=board.window)
    counted = judged.values("model").annotate(nodes=Count("pk")).order_by("-nodes", "model")
    models = counted.values_list("model", flat=True)[:COMMON_MODELS]
    return keep_briefly(f"models:{board.window}", lambda: list(models))


def read_chart(board: Leaderboard) -> Chart:
    """Return the chart of the page's first CHARTED_NODES nodes over the season's last rounds.

    It includes the untrained node of the first node's model, if there is one. Makes at most four
    queries.
    """
    leaders = [row.node for row in board.rows[:CHARTED_NODES]]
    season = Season.objects.filter(name=board.season).first()
    if season is None or not leaders:
        return Chart(order=[], rows=[])
    same_model = [base for base in board.base if base.model == board.rows[0].model]
    lift = measure_lift(board.rows[0], same_model)
    order = [*leaders, *([lift.base.node] if lift else [])]
    ids = Node.objects.filter(name__in=order).values_list("pk", flat=True)
    scores = list(score_history(season, ids, rounds=CHARTED_ROUNDS))
    return Chart(order=order, rows=scores[::-1])


# ---- finding a node


@dataclass(frozen=True)
class NodeSearchResult:
    """The result of a search for a node by name.

    `after` is the value of the query parameter `after` for the leaderboard's page with the node. If
    no page lists the node, `after` is None and `problem` says why; otherwise `problem` is empty.
    `exists` is whether there is a node called `name`; if so, a link to the node's own page can be
    shown.
    """

    name: str
    after: int | None
    problem: str = ""
    exists: bool = True


def search_node(query: BoardQuery) -> NodeSearchResult | None:
    """Return where the leaderboard lists the node `query.find`; None if `query.find` is empty."""
    if not query.find:
        return None
    node = Node.objects.filter(name__in={query.find, query.find.lower()}).first()
    if node is None:
        return NodeSearchResult(
            query.find,
            after=None,
            problem=_(
                "No node has this name. Names have a hyphen between their words, such as amber-"
                "quiet-heron; “Name contains” also finds a part of a name."
            ),
            exists=False,
        )
    season = shown_season()
    standings = standings_in(season, query.window) if season else Standing.objects.none()
    standing = standings.filter(node=node).select_related("season").first()
    if standing is None:
        return NodeSearchResult(
            node.name, after=None, problem=_("It has not been judged in this window yet.")
        )
    after = find_page(standing, filters=query.filters)
    problem = "" if after is not None else _explain_absence(standing, query.filters)
    return NodeSearchResult(node.name, after, problem=problem)


def _explain_absence(standing: Standing, filters: Filters) -> str:
    """Return in words why the filtered leaderboard does not list the node of `standing`."""
    if standing.remark == Standing.Remark.QUARANTINED:
        return _("The operator quarantined it: it is judged but not listed.")
    if find_page(standing, filters=replace(filters, arm=Node.Arm.BASE)) is not None:
        return _("It is an untrained model. Choose the arm “untrained” to list it.")
    return _("It is on the leaderboard, but your filters exclude it.")
