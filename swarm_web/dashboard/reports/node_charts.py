"""A node's charts: its judge scores beside the scores of its untrained model, and its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from judge.models import Score, Season
from judge.selectors.scores import results_of_node
from judge.selectors.seasons import shown_season
from swarm_web.board.leaderboard import LeaderboardRow, read_base
from swarm_web.core.errors import RequestError, check_choice
from swarm_web.dashboard.charts.parts import Figure, TabledChart
from swarm_web.dashboard.charts.scores import (
    POOLED_ROUNDS,
    ScorePoint,
    draw_node,
    pool_in,
    pool_rounds,
)
from swarm_web.dashboard.charts.training import draw_reflection, draw_training, name_kinds
from swarm_web.dashboard.reports.board import CHARTED_ROUNDS, Lift
from swarm_web.edge.brief_cache import keep_briefly
from swarm_web.nodes.models import Node
from swarm_web.relay.models import TrainingPoint
from swarm_web.relay.selectors.history import Peer, given_to, taken_from, training_points

WINDOW = "season"
# Numbers of rounds that a visitor can select. A node's line has at most as many points as the
# smallest; the line of its untrained node may have more.
SPANS = (CHARTED_ROUNDS, 4 * CHARTED_ROUNDS, 16 * CHARTED_ROUNDS)
# Number of training reports in a chart; the relay keeps one every few minutes.
CHARTED_POINTS = 288
LISTED_PEERS = 8
PEERS_SINCE = timedelta(days=7)


# ---- judge scores


def read_span(text: str | None) -> int:
    """Return `text` as a number of rounds; the smallest of SPANS if `text` is None or empty.

    Raises RequestError for any other text that is not one of SPANS.
    """
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


def draw_history(
    node: Node, season: Season, *, base: LeaderboardRow | None, span: int
) -> TabledChart:
    """Draw a node's scores in the season's last `span` rounds in which it was scored.

    `span` is one of SPANS. Scores are pooled over rounds as in `charts.scores.draw_node`. If `base`
    is the row of an untrained node of the same model, that node's scores are drawn too. Makes at
    most two queries, plus one if the season's first round is not cached.
    """
    scored = scores_since_start(node, season).filter(status=Score.Status.SCORED)
    points = _read_points(scored, node=node.name, rounds=span)
    untrained = _read_untrained(season, base, points)
    step = span // SPANS[0]
    width = max(POOLED_ROUNDS, step)
    line = pool_rounds(points, width=width, step=step)
    rounds = {pooled.round for pooled in line}
    compared = {p.round: p.share for p in pool_in(untrained, rounds, width=width)}
    return TabledChart(
        draw=partial(draw_node, points, base=untrained, step=step),
        columns=[_("Round"), _("Score"), _("95 % interval"), "n", _("Untrained")],
        rows=[(p.round, p.share, p.interval, p.n, compared.get(p.round)) for p in reversed(line)],
    )


def _read_untrained(
    season: Season, base: LeaderboardRow | None, points: Sequence[ScorePoint]
) -> list[ScorePoint]:
    """Return the points of the untrained node `base`, from the first to the last round of `points`.

    The list is empty if `base` is None or there are no `points`. It has at most SPANS[-1] points,
    the newest ones.
    """
    if base is None or not points:
        return []
    first, last = points[0].round, points[-1].round
    found = Score.objects.filter(
        node__name=base.node,
        round__season=season,
        round__phase="closed",
        round__number__range=(first, last),
        status=Score.Status.SCORED,
    )
    return _read_points(found.order_by("-round__number"), node=base.node, rounds=SPANS[-1])


def _read_points(newest_first: QuerySet[Score], *, node: str, rounds: int) -> list[ScorePoint]:
    """Return the points of the newest `rounds` scores, oldest first, reading only three columns."""
    columns = newest_first.values_list("round__number", "arm", "cells")[:rounds]
    return [ScorePoint(node, arm, number, cells) for number, arm, cells in columns if cells][::-1]


def scores_since_start(node: Node, season: Season) -> QuerySet[Score]:
    """Return a node's results in the season's closed rounds, newest first (`results_of_node`).

    The query also excludes all rounds whose id is lower than that of the season's first round. This
    does not change the result: ids increase with the numbers of rounds, so these rounds belong to
    earlier seasons. But it lets the database skip their scores by the index alone.
    """
    ids = season.rounds.order_by("number").values_list("pk", flat=True)
    first = keep_briefly(f"first round:{season.pk}", ids.first)
    return results_of_node(node).filter(round__season=season, round__gte=first or 0)


def find_base(
    node: Node, season: Season, *, now: datetime, lift: Lift | None = None
) -> LeaderboardRow | None:
    """Return the leaderboard row of the untrained node with the same model as `node`.

    If there are several such nodes, the one with the most questions that count is chosen. Returns
    None if there is no such node, or if `node` is itself untrained. If `lift` compares `node` with
    an untrained node of the same model, the row is taken from `lift` without a query.
    """
    if node.arm == Node.Arm.BASE:
        return None
    if lift is not None and lift.base.model == node.model:
        return lift.base
    return max(read_bases(node.model, season, now=now), key=lambda row: row.n, default=None)


def read_bases(model: str, season: Season, *, now: datetime) -> list[LeaderboardRow]:
    """Return the rows of a model's untrained nodes in a season, in the leaderboard's order.

    The rows are cached (`keep_briefly`).
    """
    return keep_briefly(
        f"bases:{season.pk}:{model}",
        lambda: read_base(model, season=season, window=WINDOW, now=now),
    )


# ---- training


@dataclass(frozen=True)
class Exchanged:
    """The nodes with which a node exchanged rollouts of a season in the last 7 days.

    The node trained on rollouts of the nodes in `taken`, and the nodes in `given` trained on its
    rollouts. Each list has at most LISTED_PEERS nodes, those with the most rollouts first.
    """

    taken: list[Peer]
    given: list[Peer]


def read_steps(node: Node, season: Season) -> list[TrainingPoint]:
    """Return a node's last CHARTED_POINTS training reports of a season, oldest first.

    Makes one query.
    """
    return training_points(node, season_id=season.pk, limit=CHARTED_POINTS)


def read_exchanged(node: Node, season: Season, *, now: datetime) -> Exchanged:
    """Return the nodes that exchanged rollouts of the season with `node` in the last 7 days.

    Makes two queries.
    """
    since = now - PEERS_SINCE
    return Exchanged(
        taken=taken_from(node, season_id=season.pk, since=since, limit=LISTED_PEERS),
        given=given_to(node, season_id=season.pk, since=since, limit=LISTED_PEERS),
    )


def chart_training(steps: Sequence[TrainingPoint]) -> TabledChart:
    """Draw the training reward and the share of informative rollouts; `steps` are oldest first."""
    return TabledChart(
        draw=partial(draw_training, steps),
        columns=[_("Step"), _("Training reward"), _("Informative share")],
        rows=[(s.step, s.training_reward, s.informative_share) for s in reversed(steps)],
    )


def chart_reflection(steps: Sequence[TrainingPoint]) -> TabledChart:
    """Draw the share of completions with each kind of reflection; `steps` are oldest first."""
    kinds = name_kinds()
    return TabledChart(
        draw=partial(draw_reflection, steps),
        columns=[_("Step"), *kinds.values()],
        rows=[
            (s.step, *(s.reflection.get(kind) for kind in kinds))
            for s in reversed(steps)
            if s.reflection
        ],
    )


# ---- all charts of the page


def read_charts(
    node: Node, season: Season, *, base: LeaderboardRow | None, span: int
) -> dict[str, TabledChart]:
    """Read the charts `history`, `training` and `reflection` of a node's page.

    `history` shows the last rounds in which the node was scored; `span`, one of SPANS, is their
    number. If `base` is the row of an untrained node of the same model, that node's scores are
    shown too. Makes at most three queries, plus one if the season's first round is not cached.
    """
    steps = read_steps(node, season)
    return {
        "history": draw_history(node, season, base=base, span=span),
        "training": chart_training(steps),
        "reflection": chart_reflection(steps),
    }


def draw_figure(node: Node, chart: str, *, span: int, now: datetime) -> Figure:
    """Draw a chart of a node's page: `score`, `training` or `reflection`.

    `score` is the chart that `read_charts` calls `history`. The figure is empty before the first
    season. Raises RequestError for another chart.
    """
    check_choice("chart", chart, ["score", "training", "reflection"])
    season = shown_season()
    if season is None:
        return {}
    if chart == "score":
        base = find_base(node, season, now=now)
        return draw_history(node, season, base=base, span=span).figure
    steps = read_steps(node, season)
    return (chart_training(steps) if chart == "training" else chart_reflection(steps)).figure
