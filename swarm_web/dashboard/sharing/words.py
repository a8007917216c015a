"""Figures as badges and cards write them: as the pages do; pure."""

from swarm_record.stats import Interval
from swarm_web.dashboard.sharing.facts import NodeFacts, SiteFacts


def write_share(score: float) -> str:
    """Write a fraction of one with three decimals and no leading zero: `.347`."""
    return f"{score:.3f}".removeprefix("0")


def write_interval(interval: Interval) -> str:
    """Write an interval of fractions, such as .311 to .384."""
    return f"{write_share(interval[0])}–{write_share(interval[1])}"


def write_rank(facts: NodeFacts) -> str:
    """Say which rank a node has of how many, or why it has none."""
    if facts.rank is None:
        return facts.unranked
    best, worst = facts.rank
    ranks = str(best) if best == worst else f"{best}–{worst}"
    return f"rank {ranks} of {facts.ranked}"


def describe_node(facts: NodeFacts) -> str:
    """Say a node's rank and score in a few words."""
    if facts.score is None:
        return facts.unranked
    return f"{write_share(facts.score)} · {write_rank(facts)}"


def describe_site(facts: SiteFacts) -> str:
    """Say in a few words what the site does."""
    nodes = "1 node" if facts.connected == 1 else f"{facts.connected} nodes"
    return nodes if facts.round is None else f"{nodes} · round {facts.round}"
