"""The judge's round as a state machine; pure: time is an argument, nothing is read or written.

    SCHEDULED -> OPEN -> SCORING -> CLOSED,   and VOID from anywhere

Every phase has a deadline, and the two that wait for others have an early-advance condition: all
expected answers are in, all answers are graded. So a round cannot get stuck: whatever nodes and
workers do or fail to do, the clock alone moves it on. A round whose questions wait for a public
beacon opens once they are drawn, and becomes void if they are not within BEACON_PATIENCE.

The shell (`judge.services`) reads the facts with the round's row locked, asks `due_move`, and
writes the answer by a conditional UPDATE; two beats at once, or one that acts twice, therefore move
a round once.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from swarm_protocol.returning import HURRY_S, LONGEST_PAUSE_S

# How often the judge's clock ticks when all is well.
TICK = timedelta(seconds=1)
# How long after its opening time a round waits for the value of a public beacon.
BEACON_PATIENCE = timedelta(minutes=10)
# A clock that was away for less than this was merely slow.
TOLERANCE = timedelta(seconds=15)
# Web processes give a sign of life each second: with this much silence none is ready.
SILENCE = timedelta(seconds=3)
# What nodes need after their pause: a handshake, and a tick that notes late that the site is back.
SETTLING = timedelta(seconds=5)


class Phase(StrEnum):
    """Where a round stands."""

    SCHEDULED = "scheduled"
    OPEN = "open"
    SCORING = "scoring"
    CLOSED = "closed"
    VOID = "void"


@dataclass(frozen=True)
class Deadlines:
    """When a round opens, when answers must be in, and when it closes ungraded or not."""

    opens_at: datetime
    closes_at: datetime
    score_by: datetime

    def give_back(self, lost: timedelta) -> "Deadlines":
        """Return the deadlines that lie ahead, later by the time in which nobody was judging."""
        return Deadlines(self.opens_at, self.closes_at + lost, self.score_by + lost)


@dataclass(frozen=True)
class Facts:
    """All that decides a round's next move.

    `season_active`: the season runs and is not paused. `another_open`: another round of the season
    is open. `expected` nodes have a seat that counts and `completed` of them have answered all.
    `ungraded` counts stored answers without a verdict. `drawn`: the round has its questions.
    """

    phase: Phase
    deadlines: Deadlines
    season_active: bool
    another_open: bool
    early_advance: bool
    expected: int
    completed: int
    ungraded: int
    drawn: bool


def set_deadlines(opens_at: datetime, *, open_seconds: float, scoring_seconds: float) -> Deadlines:
    """Return the deadlines of a round that opens at `opens_at`."""
    closes_at = opens_at + timedelta(seconds=open_seconds)
    return Deadlines(opens_at, closes_at, closes_at + timedelta(seconds=scoring_seconds))


def due_move(facts: Facts, *, now: datetime) -> Phase | None:
    """Return the phase that the round should be in next, or None while it should stay."""
    if facts.phase == Phase.SCHEDULED and not facts.drawn:
        return Phase.VOID if now >= facts.deadlines.opens_at + BEACON_PATIENCE else None
    if facts.phase == Phase.SCHEDULED:
        may_open = facts.season_active and not facts.another_open
        return Phase.OPEN if may_open and now >= facts.deadlines.opens_at else None
    if facts.phase == Phase.OPEN:
        all_in = facts.early_advance and 0 < facts.expected <= facts.completed
        return Phase.SCORING if all_in or now >= facts.deadlines.closes_at else None
    if facts.phase == Phase.SCORING:
        return Phase.CLOSED if not facts.ungraded or now >= facts.deadlines.score_by else None
    return None


def takes_answers(phase: Phase, deadlines: Deadlines, *, now: datetime) -> bool:
    """Tell whether an answer that arrives now is in time."""
    return phase == Phase.OPEN and now < deadlines.closes_at


def lost_time(last_seen: datetime | None, *, now: datetime) -> timedelta:
    """Return how long the judge's clock stood still, which nodes should not pay for.

    `last_seen` is when it ticked last. A clock that went backwards has lost nothing. What is lost
    begins with the first tick that did not come; so even if every tick is late, each one brings
    the deadlines a TICK nearer.
    """
    if last_seen is None or now - last_seen < TOLERANCE:
        return timedelta(0)
    return now - last_seen - TICK


def note_tick(last_seen: datetime | None, *, now: datetime) -> datetime:
    """Return when the judge's clock was seen last, after a tick.

    The clocks of several workers may differ by up to TOLERANCE: one that lags does not turn the
    others back. A clock that was set back by more is believed.
    """
    if last_seen is not None and timedelta(0) < last_seen - now < TOLERANCE:
        return last_seen
    return now


def catch_up(last_seen: datetime | None, *, now: datetime) -> datetime:
    """Return the time by which a tick moves rounds that began at `now` and may have slept since.

    Others have ticked meanwhile: what it opens by its own old time would have no time left.
    """
    return now if last_seen is None else max(last_seen, now)


# ---- no web process was ready


def return_time(silence: timedelta, *, within: timedelta) -> timedelta:
    """Return how long nodes may take to be back after a silence of the site.

    They pause as `swarm_protocol.returning` says, for `within` at most at first.
    """
    hurry = silence < timedelta(seconds=HURRY_S)
    return (within if hurry else timedelta(seconds=LONGEST_PAUSE_S)) + SETTLING


def unserved_time(
    last_seen: datetime | None, *, silence: timedelta | None, within: timedelta, now: datetime
) -> timedelta:
    """Return how much time is due at this tick because no web process was ready.

    `silence` is how long ago one was, None if that is not known; `last_seen` is the tick before. A
    silence is worth its length and the time to return. It is given piece by piece, each tick what
    its silence is worth more than that of the tick before, so that no deadline passes meanwhile.
    """
    if last_seen is None or silence is None:
        return timedelta(0)
    given = _worth(silence - (now - last_seen), within=within)
    return max(timedelta(0), _worth(silence, within=within) - given)


def _worth(silence: timedelta, *, within: timedelta) -> timedelta:
    if silence < SILENCE:
        return timedelta(0)
    return silence + return_time(silence, within=within)
