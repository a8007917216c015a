"""A judge on paper: rounds, seats, answers and graders in memory, moved by the real engine.

What the services do to the database, `PaperJudge` does to a few lists. `now` is the true time.
Everybody who acts reads a clock, which is off by what he says, in seconds, and by what all clocks
were set back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count

from judge.engine import (
    TICK,
    TOLERANCE,
    Deadlines,
    Facts,
    Phase,
    catch_up,
    due_move,
    lost_time,
    note_tick,
    set_deadlines,
    takes_answers,
)

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
QUESTIONS = 2


@dataclass
class PaperSeat:
    """A node's place: which questions it answered, and which of these are graded."""

    came_late: bool = False
    answered: set[int] = field(default_factory=set)
    graded: set[int] = field(default_factory=set)

    @property
    def completed(self) -> bool:
        return len(self.answered) == QUESTIONS


Answers = list[tuple[str, int]]


@dataclass(eq=False)
class PaperRound:
    """A round, the path of phases that it took, and what became of its answers when it closed."""

    number: int
    deadlines: Deadlines
    path: list[Phase] = field(default_factory=lambda: [Phase.SCHEDULED])
    seats: dict[str, PaperSeat] = field(default_factory=dict)
    scored: Answers = field(default_factory=list)
    left_out: Answers = field(default_factory=list)
    # When it opened, and how long nodes could not answer since the time by which it did so: while
    # the beat that opened it slept, and while nobody could reach the site.
    opened_at: datetime | None = None
    slept: timedelta = timedelta(0)
    unreachable: timedelta = timedelta(0)
    # For how long nodes could answer, if the deadline ended it.
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
class Held:
    """What a beat read when it began, at its `now`, and has not acted upon yet."""

    round: PaperRound
    phase: Phase
    now: datetime


@dataclass
class PaperJudge:
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
    rounds: list[PaperRound] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return sum(paper.phase == Phase.SCHEDULED for paper in self.rounds)

    # ---- the shell's part

    def schedule(self, *, in_seconds: float) -> None:
        """Make a round that opens some time from now."""
        opens_at = self.read_clock(in_seconds)
        self.rounds.append(PaperRound(next(self.numbers), self._deadlines(opens_at)))

    def read_facts(self, paper: PaperRound) -> Facts:
        seats = [seat for seat in paper.seats.values() if not seat.came_late]
        return Facts(
            phase=paper.phase,
            deadlines=paper.deadlines,
            season_active=self.active and not self.ended,
            another_open=any(r.phase == Phase.OPEN for r in self.rounds if r is not paper),
            early_advance=self.early_advance,
            expected=len(seats),
            completed=sum(seat.completed for seat in seats),
            ungraded=paper.ungraded,
            drawn=True,
        )

    def watch(self, *, off: float = 0) -> None:
        """Note that the clock ticks, and give back the time that an outage cost."""
        now = self.read_clock(off)
        lost = lost_time(self.watched_at, now=now)
        for paper in self.rounds:
            later = paper.deadlines.give_back(lost)
            if paper.phase == Phase.OPEN:
                paper.deadlines = later
            elif paper.phase == Phase.SCORING:
                was = paper.deadlines
                paper.deadlines = Deadlines(was.opens_at, was.closes_at, later.score_by)
        self.watched_at, self.last_tick = note_tick(self.watched_at, now=now), self.now

    def look(self, *, off: float = 0) -> list[Held]:
        """Return the rounds that are due to move, as one beat sees them."""
        now = self.read_clock(off)
        return [
            Held(paper, paper.phase, now)
            for paper in self.rounds
            if due_move(self.read_facts(paper), now=now) is not None
        ]

    def act(self, held: Held) -> bool:
        """Move a round if it is still where the beat saw it, and if a second look agrees."""
        paper, now = held.round, catch_up(self.watched_at, now=held.now)
        if paper.phase != held.phase or paper not in self.rounds:
            return False
        to = due_move(self.read_facts(paper), now=now)
        if to is None:
            return False
        self._enter(paper, to, now)
        return True

    def tick(self, *, off: float = 0) -> None:
        """Do what one beat does: watch, then move every round as far as it goes."""
        self.watch(off=off)
        while any(self.act(held) for held in self.look(off=off)):
            pass

    def _enter(self, paper: PaperRound, phase: Phase, now: datetime) -> None:
        if phase == Phase.OPEN:
            assert not any(r.phase == Phase.OPEN for r in self.rounds), "two open rounds"
            paper.deadlines, paper.opened_at = self._deadlines(now), self.now
            paper.slept = self.now - self.last_tick
        elif phase == Phase.SCORING and now >= paper.deadlines.closes_at:
            assert paper.opened_at is not None
            paper.answering_time = self.now - paper.opened_at - paper.unreachable
        elif phase == Phase.CLOSED:
            for node, seat in paper.seats.items():
                paper.scored += [(node, question) for question in seat.graded]
                paper.left_out += [(node, question) for question in seat.answered - seat.graded]
        paper.path.append(phase)

    def _deadlines(self, opens_at: datetime) -> Deadlines:
        return set_deadlines(
            opens_at, open_seconds=self.open_seconds, scoring_seconds=self.scoring_seconds
        )

    def read_clock(self, off: float) -> datetime:
        """Return what a clock shows."""
        return self.now - self.set_back + timedelta(seconds=off)

    # ---- what happens to it

    def wait(self, seconds: float) -> None:
        """Let time pass while the site can be reached."""
        self.now += timedelta(seconds=seconds)

    def go_away(self, seconds: float) -> None:
        """Let the whole site be away, right after a tick; the first TICK of it nobody notices."""
        self.tick()
        self.wait(TICK.total_seconds())
        self.now += timedelta(seconds=seconds)
        if timedelta(seconds=seconds) > TOLERANCE:
            for paper in self.rounds:
                if paper.phase == Phase.OPEN:
                    paper.unreachable += timedelta(seconds=seconds)

    def takes(self, paper: PaperRound, *, off: float = 0) -> bool:
        """Tell whether an answer is in time, as whoever stores it does."""
        now = self.read_clock(off)
        later = paper.deadlines.give_back(lost_time(self.watched_at, now=now))
        return takes_answers(paper.phase, later, now=now)

    def sit(self, paper: PaperRound, node: str, *, came_late: bool = False, off: float = 0) -> None:
        if self.takes(paper, off=off):
            paper.seats.setdefault(node, PaperSeat(came_late=came_late))

    def answer(self, paper: PaperRound, node: str, question: int, *, off: float = 0) -> bool:
        """Hand in an answer, and tell whether it was accepted."""
        seat = paper.seats.get(node)
        if seat is None or seat.came_late or not self.takes(paper, off=off):
            return False
        is_new = question not in seat.answered
        seat.answered.add(question)
        return is_new

    def grade(self, paper: PaperRound, node: str) -> None:
        """Grade a node's answers, if anybody still waits for them."""
        if paper.phase in (Phase.OPEN, Phase.SCORING) and node in paper.seats:
            seat = paper.seats[node]
            seat.graded |= seat.answered

    def void(self, paper: PaperRound) -> None:
        if paper.phase != Phase.VOID:
            paper.path.append(Phase.VOID)

    def end(self) -> None:
        """End the season: what never opened is gone, what is open is finished."""
        self.ended = True
        self.rounds = [paper for paper in self.rounds if paper.phase != Phase.SCHEDULED]
