"""The round pill: what the swarm does at this moment, on top of every page."""

from dataclasses import dataclass
from datetime import datetime

from judge.models import Round
from judge.selectors import current_round, running_season
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class Pill:
    """The current round, what its countdown counts to, and how many nodes are connected.

    `phase` is a phase of rounds, or `paused` or `none` while there is no round.
    """

    season: str | None
    number: int | None
    phase: str
    until: datetime | None
    connected: int
    now: datetime


def read_pill(*, now: datetime) -> Pill:
    """Read the round pill in three queries."""
    season = running_season()
    judge_round = current_round(season) if season else None
    connected = Node.objects.connected(now=now).count()
    phase, until = _describe(judge_round)
    if judge_round is None and season is not None and season.paused:
        phase = "paused"
    return Pill(
        season=season.name if season else None,
        number=judge_round.number if judge_round else None,
        phase=phase,
        until=until,
        connected=connected,
        now=now,
    )


def _describe(judge_round: Round | None) -> tuple[str, datetime | None]:
    """Return the phase and the moment of its end, where that is known."""
    if judge_round is None:
        return "none", None
    ends = {
        Round.Phase.SCHEDULED: judge_round.opens_at,
        Round.Phase.OPEN: judge_round.closes_at,
    }
    phase = Round.Phase(judge_round.phase)
    return phase.value, ends.get(phase)
