"""The facts that badges and cards show about a node or the site, and their English wording."""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from judge.models import Standing
from judge.selectors.scores import recent_scores
from judge.selectors.seasons import shown_season
from swarm_record.stats import Interval
from swarm_web.board.leaderboard import count_ranked, read_row
from swarm_web.dashboard.reports.board import read_board
from swarm_web.dashboard.reports.home import read_pill
from swarm_web.dashboard.templatetags.figures import write_share
from swarm_web.nodes.models import Node

WINDOW = "season"
RECENT_ROUNDS = 20
LEADERS = 3
# Why a node has no rank, short enough for a badge.
_UNRANKED = {
    Standing.Remark.TOO_FEW: "too few questions yet",
    Standing.Remark.OFTEN_ABSENT: "missed too many rounds",
    Standing.Remark.BASE: "untrained model",
    Standing.Remark.QUARANTINED: "not ranked",
}


# ---- facts


@dataclass(frozen=True)
class NodeFacts:
    """A node's standing in the shown season (`shown_season`).

    `score` and `interval` (over `n` questions) are None if the node was not judged yet. `rank` is
    (best, worst) among `ranked` nodes; if it is None, `unranked` says why. `recent` are the node's
    scores in the last rounds, oldest first.
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
    """The current state of the site.

    `leaders` are (name, score, interval) of the first ranked nodes, at most LEADERS, best first.
    `season` is empty before the first season, `round` None without a current round. `connected` and
    `ranked` are numbers of nodes.
    """

    name: str
    season: str
    round: int | None
    connected: int
    ranked: int
    leaders: tuple[tuple[str, float, Interval], ...]


def read_node_facts(node: Node, *, now: datetime) -> NodeFacts:
    """Return what badges and cards show about a node, in a constant number of queries."""
    season = shown_season()
    row = read_row(node, season=season, window=WINDOW, now=now) if season else None
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
        ranked=count_ranked(season),
        unranked=_UNRANKED[Standing.Remark(row.remark)] if row.remark else "",
        recent=tuple(recent.get(node.name, ())),
    )


def read_site_facts(*, now: datetime) -> SiteFacts:
    """Return what badges and cards show about the site, in a constant number of queries."""
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


def write_rank(facts: NodeFacts) -> str:
    """Write a node's rank, `rank 3 of 41`, or why it has none."""
    if facts.rank is None:
        return facts.unranked
    best, worst = facts.rank
    ranks = str(best) if best == worst else f"{best}–{worst}"
    return f"rank {ranks} of {facts.ranked}"


# ---- wording


def describe_node(facts: NodeFacts) -> str:
    """Return a node's score and rank as text, or why it has no score."""
    if facts.score is None:
        return facts.unranked
    return f"{write_share(facts.score)} · {write_rank(facts)}"


def describe_site(facts: SiteFacts) -> str:
    """Write the number of connected nodes, and the current round if there is one."""
    nodes = "1 node" if facts.connected == 1 else f"{facts.connected} nodes"
    return nodes if facts.round is None else f"{nodes} · round {facts.round}"
