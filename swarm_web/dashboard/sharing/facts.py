"""What badges and cards say, read from the same rows as the pages."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from judge.models import Standing
from judge.selectors import recent_scores, shown_season
from swarm_record.stats import Interval
from swarm_web.dashboard.reports.board import read_board
from swarm_web.dashboard.reports.pill import read_pill
from swarm_web.leaderboard import count_ranked, read_line
from swarm_web.nodes.models import Node

WINDOW = "season"
RECENT_ROUNDS = 20
LEADERS = 3
# Why a node has no rank, in as few words as fit a badge.
_UNRANKED = {
    Standing.Remark.TOO_FEW: "too few questions yet",
    Standing.Remark.OFTEN_ABSENT: "missed too many rounds",
    Standing.Remark.BASE: "untrained model",
    Standing.Remark.QUARANTINED: "not ranked",
}


@dataclass(frozen=True)
class NodeFacts:
    """A node's standing in the season; `recent` are its scores of the last rounds, oldest first.

    Without a score it was not judged yet; without a rank `unranked` says why.
    """

    name: str
    model: str
    arm: str
    score: float | None = None
    interval: Interval | None = None
    n: int = 0
    rank: tuple[int, int] | None = None
    ranked: int = 0
    unranked: str = "not judged yet"
    recent: tuple[float, ...] = ()


@dataclass(frozen=True)
class SiteFacts:
    """What the whole site is about at this moment; `leaders` are (name, score, interval)."""

    name: str
    season: str
    round: int | None
    connected: int
    ranked: int
    leaders: tuple[tuple[str, float, Interval], ...]


def read_node_facts(node: Node, *, now: datetime) -> NodeFacts:
    """Read what is told of a node, in a constant number of queries."""
    season = shown_season()
    row = read_line(node, season=season, window=WINDOW, now=now) if season else None
    if season is None or row is None:
        return NodeFacts(node.name, node.model, node.arm)
    recent = recent_scores(season, [node.name], rounds=RECENT_ROUNDS)
    return NodeFacts(
        name=node.name,
        model=row.model,
        arm=row.arm,
        score=row.score,
        interval=row.interval,
        n=row.n,
        rank=row.rank,
        ranked=count_ranked(season, WINDOW),
        unranked=_UNRANKED[Standing.Remark(row.remark)] if row.remark else "",
        recent=tuple(recent.get(node.name, ())),
    )


def read_site_facts(*, now: datetime) -> SiteFacts:
    """Read what is told of the site, in a constant number of queries."""
    board = read_board(WINDOW, now=now, limit=LEADERS)
    pill = read_pill(now=now)
    return SiteFacts(
        name=settings.SITE_NAME,
        season=board.season,
        round=pill.number,
        connected=pill.connected,
        ranked=board.totals.ranked,
        leaders=tuple(
            (row.node, row.score, row.interval) for row in board.rows if row.rank is not None
        ),
    )
