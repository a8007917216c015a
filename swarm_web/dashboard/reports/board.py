"""The leaderboard as pages show it: the rows of `swarm_web.leaderboard` and their history."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.db.models import Count

from judge.models import Score, Season, Standing
from judge.selectors import (
    WINDOWS,
    recent_scores,
    score_history,
    shown_season,
    standings_edition,
)
from swarm_web.brief_cache import keep_briefly
from swarm_web.dashboard.charts.parts import Figure
from swarm_web.dashboard.charts.scores import Point, draw_leaders
from swarm_web.dashboard.reports.lineup import BoardLine, line_up, measure_lift
from swarm_web.errors import RequestError
from swarm_web.keyset import decode_numbers, encode_numbers
from swarm_web.leaderboard import (
    EVERYBODY,
    PAGE_ROWS,
    WAITING_NAMES,
    Filters,
    Leaderboard,
    read_leaderboard,
)
from swarm_web.nodes.models import Node

# As many lines as a reader can tell apart, over as many rounds as fit a chart.
CHARTED_NODES = 5
CHARTED_ROUNDS = 60
# Enough to see a direction in the width of a column.
SPARK_ROUNDS = 20
# As many as fit a list of suggestions; any other can be typed.
COMMON_MODELS = 20
_FILTERS = ("model", "arm", "owner", "search")


@dataclass(frozen=True)
class BoardQuery:
    """A page of the leaderboard, as its address asks for it; `find` is a node to look for."""

    window: str = "season"
    filters: Filters = EVERYBODY
    after: int = 0
    find: str = ""

    def encode(self) -> str:
        """Return the query string by which the page's socket asks for the same rows."""
        parts = {"view": "board", "window": self.window, **asdict(self.filters)}
        parts["after"] = encode_numbers(self.after) if self.after else ""
        return urlencode({name: value for name, value in parts.items() if value})


FIRST_PAGE = BoardQuery()


@dataclass(frozen=True)
class Chart:
    """A figure, and the same rows for the table beside it, newest round first.

    `order` are the lines of the figure, the leader's first.
    """

    order: list[str]
    rows: list[Score]

    @property
    def figure(self) -> Figure:
        """The figure, drawn anew each time: the page itself does without."""
        points = points_of(self.rows[::-1])
        charted = {point.node for point in points}
        order = [node for node in self.order if node in charted]
        return draw_leaders(points, order=order) if self.order else {}


def read_window(text: str | None) -> str:
    """Return the window that a query string asks for. Raises RequestError."""
    window = text or "season"
    if window not in WINDOWS:
        raise RequestError(
            "query.window",
            f"There is no window {window[:40]!r}.",
            fix=f"Use one of {', '.join(WINDOWS)}.",
        )
    return window


def read_query(params: Mapping[str, str]) -> BoardQuery:
    """Return what a query string asks for. Raises RequestError."""
    filters = Filters(**{name: params.get(name, "").strip()[:200] for name in _FILTERS})
    if filters.arm and filters.arm not in Node.Arm.values:
        raise RequestError(
            "query.arm",
            f"There is no arm {filters.arm[:40]!r}.",
            fix=f"Use one of {', '.join(Node.Arm.values)}.",
        )
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
    filters: Filters = EVERYBODY,
    after: int = 0,
    limit: int = PAGE_ROWS,
) -> Leaderboard:
    """Return a page of the shown season's leaderboard; an empty one before the first season."""
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
    """Return a number that changes when the shown season's board is drawn up again."""
    season = shown_season()
    return standings_edition(season, window) if season else 0


def read_lines(board: Leaderboard) -> list[BoardLine]:
    """Return the page's lines with the scores of each node's last rounds, in two queries."""
    season = Season.objects.filter(name=board.season).first()
    names = [row.node for row in (*board.rows, *board.base)]
    recent = recent_scores(season, names, rounds=SPARK_ROUNDS) if season and names else {}
    return line_up(board, recent=recent)


def common_models(board: Leaderboard) -> list[str]:
    """Return the models of most nodes in the board's window, most common first."""
    judged = Standing.objects.filter(season__name=board.season, window=board.window)
    counted = judged.values("model").annotate(nodes=Count("pk")).order_by("-nodes", "model")
    models = counted.values_list("model", flat=True)[:COMMON_MODELS]
    return keep_briefly(f"models:{board.window}", lambda: list(models))


def read_chart(board: Leaderboard) -> Chart:
    """Return the leading nodes' scores over the season's last rounds, in three queries.

    The model that leads is drawn untrained too, if it was judged so.
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


def points_of(scores: Sequence[Score]) -> list[Point]:
    """Return what charts draw of scores."""
    return [
        Point(node=s.node.name, arm=s.arm, round=s.round.number, cells=s.cells)
        for s in scores
        if s.cells
    ]
