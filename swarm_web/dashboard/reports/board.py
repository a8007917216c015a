"""The leaderboard as pages show it: the rows of `swarm_web.leaderboard` and their history."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from judge.models import Score, Season
from judge.selectors import WINDOWS, score_history, shown_season
from swarm_web.dashboard.charts.scores import Figure, Point, draw_leaders
from swarm_web.dashboard.reports.lineup import measure_lift
from swarm_web.errors import RequestError
from swarm_web.leaderboard import Leaderboard, read_leaderboard
from swarm_web.nodes.models import Node

# As many lines as a reader can tell apart, over as many rounds as fit a chart.
CHARTED_NODES = 5
CHARTED_ROUNDS = 60


@dataclass(frozen=True)
class Chart:
    """A figure, and the same rows for the table beside it, newest round first."""

    figure: Figure
    rows: list[Score]


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


def read_board(window: str, *, now: datetime) -> Leaderboard:
    """Return the shown season's leaderboard; an empty one before the first season."""
    season = shown_season()
    if season is not None:
        return read_leaderboard(season, window=window, now=now)
    draft = Season()
    return Leaderboard(
        season="",
        window=window,
        as_of=now,
        recent_rounds=draft.recent_rounds,
        minimum_questions=draft.minimum_questions,
        rows=[],
        base=[],
        quarantined=0,
        waiting=list(Node.objects.connected(now=now).values_list("name", flat=True)),
    )


def read_chart(board: Leaderboard) -> Chart:
    """Return the leading nodes' scores over the season's last rounds, in three queries.

    The model that leads is drawn untrained too, if it was judged so.
    """
    leaders = [row.node for row in board.rows[:CHARTED_NODES]]
    season = Season.objects.filter(name=board.season).first()
    if season is None or not leaders:
        return Chart(figure={}, rows=[])
    same_model = [base for base in board.base if base.model == board.rows[0].model]
    lift = measure_lift(board.rows[0], same_model)
    order = [*leaders, *([lift.base.node] if lift else [])]
    ids = Node.objects.filter(name__in=order).values_list("pk", flat=True)
    scores = list(score_history(season, ids, rounds=CHARTED_ROUNDS))
    points = points_of(scores)
    charted = {point.node for point in points}
    figure = draw_leaders(points, order=[node for node in order if node in charted])
    return Chart(figure=figure, rows=scores[::-1])


def points_of(scores: Sequence[Score]) -> list[Point]:
    """Return what charts draw of scores."""
    return [
        Point(node=s.node.name, arm=s.arm, round=s.round.number, cells=s.cells)
        for s in scores
        if s.cells
    ]
