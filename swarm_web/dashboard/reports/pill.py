"""The round pill: what the swarm does at this moment, on top of every page."""

from dataclasses import dataclass
from datetime import datetime

from judge.models import Round, Season
from judge.selectors import current_round, round_in_progress, running_season
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class Pill:
    """The current round, what its countdown counts to, and how many nodes are connected.

    `phase` is that of `tell_phase`. Without a round it is `paused`, `manual` if the operator makes
    the season's rounds by hand, or `none`. The season is the one that runs, or one that ended and
    whose last round is being finished.
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
    judge_round = current_round(season) if season else round_in_progress()
    phase, until = tell_phase(judge_round) if judge_round else (_explain_none(season), None)
    shown = judge_round.season if judge_round else season
    return Pill(
        season=shown.name if shown else None,
        number=judge_round.number if judge_round else None,
        phase=phase,
        until=until,
        connected=Node.objects.connected(now=now).count(),
        now=now,
    )


def tell_phase(judge_round: Round) -> tuple[str, datetime | None]:
    """Return a round's phase, and the moment of its end where that is known.

    A round that waits in a paused season is `paused`: it opens some time after the season goes on.
    When one opens that waits for the public beacon is not known.
    """
    if judge_round.phase == Round.Phase.SCHEDULED and judge_round.season.paused:
        return "paused", None
    ends = {
        Round.Phase.SCHEDULED: judge_round.opens_at if judge_round.is_drawn else None,
        Round.Phase.OPEN: judge_round.closes_at,
    }
    phase = Round.Phase(judge_round.phase)
    return phase.value, ends.get(phase)


def _explain_none(season: Season | None) -> str:
    if season is None:
        return "none"
    if season.paused:
        return "paused"
    return "none" if season.cadence_seconds else "manual"
