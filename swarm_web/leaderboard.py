"""The leaderboard: judge scores joined with what nodes are and contributed.

Page, API, live socket and the node's own terminal panel all read these rows, so they agree.
"""

from dataclasses import dataclass
from datetime import datetime

from judge.models import Season
from judge.selectors import rank_nodes
from judge.stats import Interval
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution


@dataclass(frozen=True)
class LeaderboardRow:
    """One node's line; `score` and `interval` are fractions in [0, 1] over `n` questions."""

    rank: tuple[int, int]
    node: str
    model: str
    parameters: int
    arm: str
    score: float
    interval: Interval
    n: int
    rounds: int
    external_used: int
    last_seen: datetime | None
    connected: bool


@dataclass(frozen=True)
class Leaderboard:
    """A season's ranking over a window, and who has joined but was not judged in it yet."""

    season: str
    window: str
    as_of: datetime
    rows: list[LeaderboardRow]
    waiting: list[str]

    @property
    def leaders(self) -> list[LeaderboardRow]:
        """The nodes than which none is surely better: more than one where they tie."""
        return [row for row in self.rows if row.rank[0] == 1]


def read_leaderboard(season: Season, *, window: str, now: datetime) -> Leaderboard:
    """Return the season's leaderboard in a constant number of queries."""
    scores = rank_nodes(season, window, now=now)
    nodes = Node.objects.in_bulk([row.node_id for row in scores])
    used = dict(Contribution.objects.filter(season=season).values_list("node_id", "external_used"))
    rows = [
        LeaderboardRow(
            rank=row.rank,
            node=nodes[row.node_id].name,
            model=nodes[row.node_id].model,
            parameters=nodes[row.node_id].parameters,
            arm=nodes[row.node_id].arm,
            score=row.score,
            interval=row.interval,
            n=row.n,
            rounds=row.rounds,
            external_used=used.get(row.node_id, 0),
            last_seen=nodes[row.node_id].last_seen,
            connected=nodes[row.node_id].is_connected(now=now),
        )
        for row in scores
    ]
    waiting = Node.objects.connected(now=now).exclude(pk__in=list(nodes))
    return Leaderboard(
        season=season.name,
        window=window,
        as_of=now,
        rows=rows,
        waiting=list(waiting.values_list("name", flat=True)),
    )
