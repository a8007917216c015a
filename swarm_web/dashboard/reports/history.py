"""A node's judge scores over its last rounds, beside the same model untrained."""

from collections.abc import Sequence
from datetime import datetime

from django.utils.translation import gettext as _

from judge.models import Score, Season
from judge.selectors import scores_of_node
from swarm_web.dashboard.charts.scores import POOLED_ROUNDS, Pooled, draw_node, pool_rounds
from swarm_web.dashboard.reports.board import CHARTED_ROUNDS, points_of
from swarm_web.dashboard.reports.drawings import Drawing, Value
from swarm_web.errors import RequestError
from swarm_web.leaderboard import LeaderboardRow, read_base
from swarm_web.nodes.models import Node

WINDOW = "season"
# So many rounds may be looked at together. A chart has as many points as the fewest of them.
SPANS = (CHARTED_ROUNDS, 4 * CHARTED_ROUNDS, 16 * CHARTED_ROUNDS)


def read_span(text: str | None) -> int:
    """Return how many rounds a query string asks for. Raises RequestError."""
    spans = {str(span): span for span in SPANS}
    if not text:
        return SPANS[0]
    if text not in spans:
        raise RequestError(
            "query.rounds",
            f"There is no stretch of {text[:40]!r} rounds.",
            fix=f"Use one of {', '.join(spans)}.",
        )
    return spans[text]


def draw_history(node: Node, season: Season, *, base: LeaderboardRow | None, span: int) -> Drawing:
    """Draw a node's last `span` rounds of a season, in at most two queries.

    `base` is the line of the same model untrained, if it was judged.
    """
    scored = scores_of_node(node, season).filter(status=Score.Status.SCORED)
    scores = list(scored[:span])[::-1]
    step = span // SPANS[0]
    untrained = _read_untrained(season, base, scores)
    points, base_points = points_of(scores), points_of(untrained)
    width = max(POOLED_ROUNDS, step)
    line = pool_rounds(points, width=width, step=step)
    compared = {p.round: p for p in pool_rounds(base_points, width=width)}
    return Drawing(
        figure=draw_node(points, base=base_points, step=step),
        columns=[_("Round"), _("Score"), _("95 % interval"), "n", _("Untrained")],
        rows=[_tell(pooled, compared.get(pooled.round)) for pooled in reversed(line)],
    )


def _tell(pooled: Pooled, base: Pooled | None) -> list[Value]:
    interval = (pooled.low, pooled.high)
    return [pooled.round, pooled.score, interval, pooled.n, base.score if base else None]


def _read_untrained(
    season: Season, base: LeaderboardRow | None, scores: Sequence[Score]
) -> list[Score]:
    """Return the untrained model's scores in the stretch of rounds of these scores."""
    if base is None or not scores:
        return []
    first, last = scores[0].round.number, scores[-1].round.number
    found = Score.objects.filter(
        node__name=base.node,
        round__season=season,
        round__phase="closed",
        round__number__range=(first, last),
        status=Score.Status.SCORED,
    )
    newest = found.select_related("round", "node").order_by("-round__number")
    return list(newest[: SPANS[-1]])[::-1]


def find_base(node: Node, season: Season, *, now: datetime) -> LeaderboardRow | None:
    """Return the line of a node's model untrained, of the most questions; None for such a node."""
    if node.arm == Node.Arm.BASE:
        return None
    bases = read_base(node.model, season=season, window=WINDOW, now=now)
    return max(bases, key=lambda row: row.n, default=None)
