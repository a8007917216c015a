"""An in-memory judge: rounds, seats, answers and graders, driven by the real engine.

`InMemoryJudge` does to lists what the services do to the database. `now` is the true time. Each
actor reads a clock that is wrong by its own `off` seconds and by `set_back`, which all share.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from judge.engine import (
    TICK,
    TOLERANCE,
    Deadlines,
    Phase,
    RoundFacts,
    accepts_answers,
    catch_up,
    lost_time,
    next_phase,
    note_tick,
    set_deadlines,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = 2


@dataclass
class InMemorySeat:
    """A node's seat, with its answered and its graded questions."""

    came_late: bool = False
    answered: set[int] = field(default_factory=set)
    graded: set[int] = field(default_factory=set)

    @property
    def completed(self) -> bool:
        return len(self.answered) == QUESTIONS


Answers = list[tuple[str, int]]


@dataclass(eq=False)
class InMemoryRound:
    """A round with its past phases, and the answers that were scored when it closed."""

    number: int
    deadlines: Deadlines
    path: list[Phase] = field(default_factory=lambda: [Phase.SCHEDULED])
    seats: dict[str, InMemorySeat] = field(default_factory=dict)
    scored: Answers = field(default_factory=list)
    left_out: Answers = field(default_factory=list)
    # When it opened, and how long nodes could not answer since then: while the tick that opened it
    # was suspended, and while the site was unreachable.
    opened_at: datetime | None = None
    slept: timedelta = timedelta(0)
    unreachable: timedelta = timedelta(0)
    # How long nodes could answer, if the deadline ended answering.
    answering_time: timedelta | None = None

    @property
    def phase(self) -> Phase:
        return self.path[-1]

    @property
    def accepted(self) -> Answers:
        return [(node, q) for node, seat in self.seats.items() for q in seat.answered]

    @property
    def ungraded(self) -> int:
        return sum(len(seat.answered - seat.graded) for seat in self.seats.values())


@dataclass(frozen=True)
class DueRound:
    """A due round as a tick read it at its `now`, before the tick acts on it."""

    round: InMemoryRound
    phase: Phase
    now: datetime


@dataclass
class InMemoryJudge:
    """One season with its rounds."""

    open_seconds: float = 30
    scoring_seconds: float = 20
    early_advance: bool = True
    active: bool = True
    ended: bool = False
    now: datetime = EPOCH
    set_back: timedelta = timedelta(0)
    numbers: Iterator[int] = field(default_factory=lambda: count(1))
    watched_at: datetime | None = None
    last_tick: datetime = EPOCH
    rounds: list[InMemoryRound] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(judge_round.phase == Phase.SCHEDULED for judge_round in self.rounds)

    # ---- what the services do

    def schedule(self, *, in_seconds: float) -> None:
        """Schedule a round."""
        opens_at = self.read_clock(in_seconds)
        self.rounds.append(InMemoryRound(next(self.numbers), self._deadlines(opens_at)))

    def read_facts(self, judge_round: InMemoryRound) -> RoundFacts:
        seats = [seat for seat in judge_round.seats.values() if not seat.came_late]
        return RoundFacts(
            phase=judge_round.phase,
            deadlines=judge_round.deadlines,
            season_active=self.active and not self.ended,
            another_open=any(r.phase == Phase.OPEN for r in self.rounds if r is not judge_round),
            early_advance=self.early_advance,
            expected=len(seats),
            completed=sum(seat.completed for seat in seats),
            ungraded=judge_round.ungraded,
            drawn=True,
        )

    def watch(self, *, off: float = 0) -> None:
        """Record a tick, and extend deadlines by the time that an outage cost."""
        now = self.read_clock(off)
        lost = lost_time(self.watched_at, now=now)
        for judge_round in self.rounds:
            later = judge_round.deadlines.extend(lost)
            if judge_round.phase == Phase.OPEN:
                judge_round.deadlines = later
            elif judge_round.phase == Phase.SCORING:
                was = judge_round.deadlines
                judge_round.deadlines = Deadlines(was.opens_at, was.closes_at, later.score_by)
        self.watched_at, self.last_tick = note_tick(self.watched_at, now=now), self.now

    def look(self, *, off: float = 0) -> list[DueRound]:
        """Return the rounds that are due to change phase, as one tick sees them."""
        now = self.read_clock(off)
        return [
            DueRound(judge_round, judge_round.phase, now)
            for judge_round in self.rounds
            if next_phase(self.read_facts(judge_round), now=now) is not None
        ]

    def act(self, due: DueRound) -> bool:
        """Change a round's phase if the facts, read again, still require it."""
        judge_round, now = due.round, catch_up(self.watched_at, now=due.now)
        if judge_round.phase != due.phase or judge_round not in self.rounds:
            return False
        to = next_phase(self.read_facts(judge_round), now=now)
        if to is None:
            return False
        self._enter(judge_round, to, now)
        return True

    def tick(self, *, off: float = 0) -> None:
        """Do what one tick does: watch, then advance every round as far as it goes."""
        self.watch(off=off)
        while any(self.act(due) for due in self.look(off=off)):
            pass

    def _enter(self, judge_round: InMemoryRound, phase: Phase, now: datetime) -> None:
        if phase == Phase.OPEN:
            assert not any(r.phase == Phase.OPEN for r in self.rounds), "two open rounds"
            judge_round.deadlines, judge_round.opened_at = self._deadlines(now), self.now
            judge_round.slept = self.now - self.last_tick
        elif phase == Phase.SCORING and now >= judge_round.deadlines.closes_at:
            assert judge_round.opened_at is not None
            judge_round.answering_time = self.now - judge_round.opened_at - judge_round.unreachable
        elif phase == Phase.CLOSED:
            for node, seat in judge_round.seats.items():
                judge_round.scored += [(node, question) for question in seat.graded]
                judge_round.left_out += [
                    (node, question) for question in seat.answered - seat.graded
                ]
        judge_round.path.append(phase)

    def _deadlines(self, opens_at: datetime) -> Deadlines:
        return set_deadlines(
            opens_at, open_seconds=self.open_seconds, scoring_seconds=self.scoring_seconds
        )

    def read_clock(self, off: float) -> datetime:
        """Return the time that a clock shows."""
        return self.now - self.set_back + timedelta(seconds=off)

    # ---- events

    def wait(self, seconds: float) -> None:
        """Let time pass while the site is reachable."""
        self.now += timedelta(seconds=seconds)

    def simulate_outage(self, seconds: float) -> None:
        """Simulate an outage right after a tick; its first TICK is not detected."""
        self.tick()
        self.wait(TICK.total_seconds())
        self.now += timedelta(seconds=seconds)
        if timedelta(seconds=seconds) > TOLERANCE:
            for judge_round in self.rounds:
                if judge_round.phase == Phase.OPEN:
                    judge_round.unreachable += timedelta(seconds=seconds)

    def accepts(self, judge_round: InMemoryRound, *, off: float = 0) -> bool:
        """Return whether an answer is in time, as the service that stores it does."""
        now = self.read_clock(off)
        later = judge_round.deadlines.extend(lost_time(self.watched_at, now=now))
        return accepts_answers(judge_round.phase, later, now=now)

    def sit(
        self, judge_round: InMemoryRound, node: str, *, came_late: bool = False, off: float = 0
    ) -> None:
        if self.accepts(judge_round, off=off):
            judge_round.seats.setdefault(node, InMemorySeat(came_late=came_late))

    def answer(
        self, judge_round: InMemoryRound, node: str, question: int, *, off: float = 0
    ) -> bool:
        """Submit an answer, and return whether it was accepted."""
        seat = judge_round.seats.get(node)
        if seat is None or seat.came_late or not self.accepts(judge_round, off=off):
            return False
        is_new = question not in seat.answered
        seat.answered.add(question)
        return is_new

    def grade(self, judge_round: InMemoryRound, node: str) -> None:
        """Grade a node's answers if the round is not finished."""
        if judge_round.phase in (Phase.OPEN, Phase.SCORING) and node in judge_round.seats:
            seat = judge_round.seats[node]
            seat.graded |= seat.answered

    def void(self, judge_round: InMemoryRound) -> None:
        if judge_round.phase != Phase.VOID:
            judge_round.path.append(Phase.VOID)

    def end(self) -> None:
        """End the season: scheduled rounds are dropped, and open ones are finished."""
        self.ended = True
        self.rounds = [
            judge_round for judge_round in self.rounds if judge_round.phase != Phase.SCHEDULED
        ]
