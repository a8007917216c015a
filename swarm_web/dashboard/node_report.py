"""A node's report: whether it works, why, and every number about it."""

from dataclasses import dataclass
from datetime import datetime

from judge.models import Score, Season
from judge.selectors import scores_of_node, shown_season
from swarm_web.dashboard.board import CHARTED_ROUNDS, points_of
from swarm_web.dashboard.charts import Figure, draw_node
from swarm_web.dashboard.verdict import Verdict, judge_health
from swarm_web.leaderboard import LeaderboardRow, read_leaderboard
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution


@dataclass(frozen=True)
class NodeReport:
    """What is known of a node; `scores` are its results in the season, newest first."""

    node: Node
    connected: bool
    season: Season | None
    row: LeaderboardRow | None
    ranked: int
    scores: list[Score]
    contribution: Contribution | None
    verdict: Verdict

    def figure(self) -> Figure:
        """Draw its scores over rounds, oldest first."""
        scored = [s for s in reversed(self.scores) if s.status == Score.Status.SCORED]
        return draw_node(points_of(scored))


def read_report(node: Node, *, now: datetime) -> NodeReport:
    """Read a node's report in a constant number of queries."""
    season = shown_season()
    board = read_leaderboard(season, window="season", now=now) if season else None
    rows = board.rows if board else []
    row = next((row for row in rows if row.node == node.name), None)
    scores = list(scores_of_node(node, season)[:CHARTED_ROUNDS]) if season else []
    connected = node.is_connected(now=now)
    return NodeReport(
        node=node,
        connected=connected,
        season=season,
        row=row,
        ranked=len(rows),
        scores=scores,
        contribution=Contribution.objects.filter(node=node, season=season).first(),
        verdict=judge_health(
            node,
            connected=connected,
            season_runs=season is not None and season.state == Season.State.RUNNING,
            scores=scores,
            ranked=row is not None,
        ),
    )
