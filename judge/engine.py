"""The state machine of a judge round; pure: time is an argument, nothing is read or written.

    SCHEDULED -> OPEN -> SCORING -> CLOSED,   and VOID from any phase

`TRANSITIONS` is the whole machine: every legal transition, with the condition under which the
clock makes it. Once open, a round has a deadline in each phase, so nodes and workers cannot keep it
from ending. OPEN ends early when all expected answers have arrived (if the season has
`early_advance`), SCORING when all answers are graded. A scheduled round waits while its season is
paused or another of its rounds is open. If its questions are not drawn within BEACON_TIMEOUT of its
opening time, it becomes void.

The services lock the round's row, read the facts, ask `next_phase` and write its answer with
`Round.change_phase`. Two ticks at the same time therefore move a round once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from swarm_protocol.returning import HURRY_S, MAX_PAUSE_S

# Interval of the judge's clock.
TICK = timedelta(seconds=1)
# How long after its opening time a round waits for the value of a public beacon.
BEACON_TIMEOUT = timedelta(minutes=10)
# A shorter gap between two ticks is not counted as downtime.
TOLERANCE = timedelta(seconds=15)
# Web processes send a heartbeat each second: after this long without one, none is ready.
SILENCE = timedelta(seconds=3)
# Nodes need this long after their pause: for a handshake, and because a tick may notice late that
# the site is back.
SETTLING = timedelta(seconds=5)


class Phase(StrEnum):
    """The phases of a round."""

    SCHEDULED = "scheduled"
    OPEN = "open"
    SCORING = "scoring"
    CLOSED = "closed"
    VOID = "void"


@dataclass(frozen=True)
class Deadlines:
    """The deadlines of a round: it opens at `opens_at` and accepts answers until `closes_at`.

    The round closes at `score_by` at the latest, even if answers are still ungraded.
    """

    opens_at: datetime
    closes_at: datetime
    score_by: datetime

    def extend(self, lost: timedelta) -> "Deadlines":
        """Return the deadlines with `closes_at` and `score_by` moved later by `lost`."""
        return Deadlines(self.opens_at, self.closes_at + lost, self.score_by + lost)


@dataclass(frozen=True)
class RoundFacts:
    """Everything that decides a round's next transition.

    `season_active`: the season is running and not paused. `another_open`: the round is scheduled
    while another round of the season is open. `early_advance`: answering ends before its deadline
    once all expected nodes, at least one, have answered. `drawn`: the round has its questions.

    The counts are 0 except in one phase. While the round is open, `expected` counts the seats
    without the flag `came_late`, and `completed` those of them whose nodes have answered every
    question. While the round is being scored, `ungraded` counts the answers without a verdict.
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


# ---- transitions


def _may_open(facts: RoundFacts, now: datetime) -> bool:
    is_blocked = not facts.drawn or not facts.season_active or facts.another_open
    return not is_blocked and now >= facts.deadlines.opens_at


def _lacks_beacon(facts: RoundFacts, now: datetime) -> bool:
    return not facts.drawn and now >= facts.deadlines.opens_at + BEACON_TIMEOUT


def _answering_ends(facts: RoundFacts, now: datetime) -> bool:
    all_answered = facts.early_advance and 0 < facts.expected <= facts.completed
    return all_answered or now >= facts.deadlines.closes_at


def _grading_ends(facts: RoundFacts, now: datetime) -> bool:
    return not facts.ungraded or now >= facts.deadlines.score_by


def _by_operator_only(_facts: RoundFacts, _now: datetime) -> bool:
    return False


Condition = Callable[[RoundFacts, datetime], bool]

# Every legal transition, and when the clock makes it. Besides, a scheduled round becomes void when
# its season has no questions left, and an operator may void a round in any phase.
TRANSITIONS: Mapping[tuple[Phase, Phase], Condition] = {
    (Phase.SCHEDULED, Phase.OPEN): _may_open,
    (Phase.SCHEDULED, Phase.VOID): _lacks_beacon,
    (Phase.OPEN, Phase.SCORING): _answering_ends,
    (Phase.OPEN, Phase.VOID): _by_operator_only,
    (Phase.SCORING, Phase.CLOSED): _grading_ends,
    (Phase.SCORING, Phase.VOID): _by_operator_only,
    (Phase.CLOSED, Phase.VOID): _by_operator_only,
}


def next_phase(facts: RoundFacts, *, now: datetime) -> Phase | None:
    """Return the phase that the round should change to now, or None if it should stay."""
    for (source, target), is_due in TRANSITIONS.items():
        if source == facts.phase and is_due(facts, now):
            return target
    return None


def accepts_answers(phase: Phase, deadlines: Deadlines, *, now: datetime) -> bool:
    """Tell whether a round in this phase accepts an answer that arrives at `now`."""
    return phase == Phase.OPEN and now < deadlines.closes_at


# ---- downtime of the judge's clock


def lost_time(last_tick: datetime | None, *, now: datetime) -> timedelta:
    """Return how long the judge's clock stood still: the time to add to rounds' deadlines.

    The result is 0 if the last tick is unknown, in the future, or less than TOLERANCE ago.
    Otherwise it is one TICK less than the time since the last tick, so that rounds end even if
    every tick is late.
    """
    if last_tick is None or now - last_tick < TOLERANCE:
        return timedelta(0)
    return now - last_tick - TICK


def latest_tick(last_tick: datetime | None, *, now: datetime) -> datetime:
    """Return the new time of the last tick, to be stored after a tick at `now`.

    If `last_tick` is later than `now` by less than TOLERANCE, the result is `last_tick`, because
    the clocks of two workers may differ by that much. Otherwise the result is `now`. If `last_tick`
    is later by TOLERANCE or more, a clock was set back.
    """
    if last_tick is not None and timedelta(0) < last_tick - now < TOLERANCE:
        return last_tick
    return now


def tick_time(last_tick: datetime | None, *, now: datetime) -> datetime:
    """Return the time that a tick begun at `now` must use: the later of `now` and `last_tick`.

    If `last_tick` is None (unknown), this is `now`. `last_tick` is later if another worker ticked
    while this tick was suspended. If this tick then opened a round with the time `now`, the nodes
    would lose part of the answering time.
    """
    return now if last_tick is None else max(last_tick, now)


# ---- no web process was ready


def return_time(silence: timedelta, *, within: timedelta) -> timedelta:
    """Return how long nodes may take to reconnect after the site was unreachable for `silence`.

    This is the longest pause of a node between two attempts to connect, plus SETTLING. The longest
    pause is `within` if the silence is shorter than HURRY_S, otherwise MAX_PAUSE_S. The site sends
    the value of `within` to nodes as `return_within` (`swarm_protocol.returning`).
    """
    is_short = silence < timedelta(seconds=HURRY_S)
    return (within if is_short else timedelta(seconds=MAX_PAUSE_S)) + SETTLING


def unserved_time(
    last_tick: datetime | None, *, silence: timedelta | None, within: timedelta, now: datetime
) -> timedelta:
    """Return by how much this tick must move deadlines because of a silence.

    A silence is a time in which no web process is ready. `silence` is the time since a web process
    was last ready, and `last_tick` is the time of the previous tick. If one of them is None
    (unknown), the result is 0. `within` is an argument of `return_time`.

    A silence shorter than SILENCE moves no deadlines. Any other silence moves them by its length
    plus `return_time` in total. At each tick during the silence, the result is the part of this
    total that earlier ticks have not yet added. So once the silence has lasted SILENCE, no deadline
    passes until it ends.
    """
    if last_tick is None or silence is None:
        return timedelta(0)
    counted = _extension_for(silence - (now - last_tick), within=within)
    return max(timedelta(0), _extension_for(silence, within=within) - counted)


def _extension_for(silence: timedelta, *, within: timedelta) -> timedelta:
    if silence < SILENCE:
        return timedelta(0)
    return silence + return_time(silence, within=within)
