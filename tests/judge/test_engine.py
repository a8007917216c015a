"""The round's state machine: transitions, answers in time, and no blocked rounds."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from judge.engine import (
    BEACON_TIMEOUT,
    TICK,
    TOLERANCE,
    Phase,
    RoundFacts,
    accepts_answers,
    latest_tick,
    lost_time,
    next_phase,
    set_deadlines,
    tick_time,
)
from judge.models import Round
from tests.judge.in_memory_judge import EPOCH, QUESTIONS, DueRound, InMemoryJudge, InMemoryRound

DEADLINES = set_deadlines(EPOCH, open_seconds=60, scoring_seconds=30)
MOMENT = timedelta(microseconds=1)
ALLOWED = {
    (Phase.SCHEDULED, Phase.OPEN),
    (Phase.OPEN, Phase.SCORING),
    (Phase.SCORING, Phase.CLOSED),
    *((phase, Phase.VOID) for phase in Phase if phase != Phase.VOID),
}
FACTS = RoundFacts(
    phase=Phase.SCHEDULED,
    deadlines=DEADLINES,
    season_active=True,
    another_open=False,
    early_advance=True,
    expected=0,
    completed=0,
    ungraded=0,
    drawn=True,
)


def facts(phase: Phase, **changes: Any) -> RoundFacts:
    return replace(FACTS, phase=phase, **changes)


# ---- when a round changes phase


@pytest.mark.parametrize(
    ("phase", "changes", "due", "then"),
    [
        (Phase.SCHEDULED, {}, DEADLINES.opens_at, Phase.OPEN),
        (Phase.SCHEDULED, {"drawn": False}, DEADLINES.opens_at + BEACON_TIMEOUT, Phase.VOID),
        (Phase.OPEN, {"expected": 2, "completed": 1}, DEADLINES.closes_at, Phase.SCORING),
        (Phase.SCORING, {"ungraded": 1}, DEADLINES.score_by, Phase.CLOSED),
    ],
    ids=["opens", "lacks-questions", "answering-ends", "scoring-ends"],
)
def test_a_round_changes_phase_at_its_deadline_and_not_before(
    phase: Phase, changes: dict[str, Any], due: datetime, then: Phase
) -> None:
    waiting = facts(phase, **changes)
    assert next_phase(waiting, now=due - MOMENT) is None
    assert next_phase(waiting, now=due) == then


def test_a_round_without_questions_becomes_void_even_in_a_paused_season() -> None:
    undrawn = facts(Phase.SCHEDULED, drawn=False, season_active=False)
    assert next_phase(undrawn, now=DEADLINES.opens_at + BEACON_TIMEOUT) == Phase.VOID


@pytest.mark.parametrize("phase", [Phase.OPEN, Phase.SCORING])
def test_an_open_round_is_finished_even_if_its_season_is_inactive(
    phase: Phase,
) -> None:
    idle = facts(phase, season_active=False, ungraded=1)
    assert next_phase(idle, now=DEADLINES.score_by) is not None


@pytest.mark.parametrize("phase", [Phase.CLOSED, Phase.VOID])
def test_a_finished_round_has_no_next_phase(phase: Phase) -> None:
    assert next_phase(facts(phase), now=DEADLINES.score_by + timedelta(days=9)) is None


# ---- legal transitions


@pytest.mark.parametrize(
    ("source", "target"), [pair for pair in product(Phase, Phase) if pair not in ALLOWED]
)
def test_a_round_refuses_an_illegal_transition(source: Phase, target: Phase) -> None:
    judge_round = Round(number=7, phase=source)
    with pytest.raises(ValueError, match=f"round 7 cannot change from {source} to {target}"):
        judge_round.change_phase(target)
    assert judge_round.phase == source


# ---- which answers are in time


def test_an_answer_is_in_time_until_the_deadline() -> None:
    last = DEADLINES.closes_at - MOMENT
    assert accepts_answers(Phase.OPEN, DEADLINES, now=last)
    assert not accepts_answers(Phase.OPEN, DEADLINES, now=DEADLINES.closes_at)


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase != Phase.OPEN])
def test_only_an_open_round_accepts_answers(phase: Phase) -> None:
    assert not accepts_answers(phase, DEADLINES, now=EPOCH)


# ---- outages


def test_a_first_tick_finds_no_lost_time() -> None:
    assert lost_time(None, now=EPOCH) == timedelta(0)


@pytest.mark.parametrize("passed", [TICK, TOLERANCE - MOMENT, -timedelta(hours=1)])
def test_a_slow_or_backward_clock_causes_no_lost_time(passed: timedelta) -> None:
    assert lost_time(EPOCH, now=EPOCH + passed) == timedelta(0)


@pytest.mark.parametrize("away", [TOLERANCE, timedelta(hours=1)])
def test_an_outage_starts_with_the_first_missed_tick(away: timedelta) -> None:
    assert lost_time(EPOCH, now=EPOCH + TICK + away) == away


def test_the_time_of_a_tick_is_stored() -> None:
    assert latest_tick(None, now=EPOCH) == EPOCH
    assert latest_tick(EPOCH, now=EPOCH + TICK) == EPOCH + TICK


def test_a_lagging_clock_does_not_set_the_last_tick_back() -> None:
    assert latest_tick(EPOCH, now=EPOCH - TOLERANCE + MOMENT) == EPOCH


def test_a_clock_that_was_set_back_is_trusted() -> None:
    assert latest_tick(EPOCH, now=EPOCH - TOLERANCE) == EPOCH - TOLERANCE


def test_a_suspended_tick_uses_the_time_of_later_ticks() -> None:
    assert tick_time(None, now=EPOCH) == EPOCH
    assert tick_time(EPOCH + TOLERANCE, now=EPOCH) == EPOCH + TOLERANCE
    assert tick_time(EPOCH - TOLERANCE, now=EPOCH) == EPOCH


def test_lost_time_extends_the_deadlines_ahead() -> None:
    later = DEADLINES.extend(timedelta(seconds=40))
    assert later.opens_at == DEADLINES.opens_at
    assert later.closes_at - DEADLINES.closes_at == timedelta(seconds=40)
    assert later.score_by - DEADLINES.score_by == timedelta(seconds=40)


# ---- random sequences of events

NODES = st.sampled_from(["amber", "birch", "coral"])
PLACES = st.integers(0, 3)
OFF = st.sampled_from([-1, 0, 1])


class ExactClocks(RuleBasedStateMachine):
    """Nodes, ticks, graders and the operator, in any order."""

    # How many seconds a clock may be wrong by; two clocks may differ by twice as much.
    SKEW = 0

    due = Bundle("due")

    def __init__(self) -> None:
        super().__init__()
        self.judge = InMemoryJudge()
        self.acked: list[tuple[int, str, int]] = []

    @property
    def open_round(self) -> InMemoryRound | None:
        return next(
            (judge_round for judge_round in self.judge.rounds if judge_round.phase == Phase.OPEN),
            None,
        )

    def pick(self, place: int) -> InMemoryRound:
        """Return one of the last rounds."""
        return self.judge.rounds[-1 - place % len(self.judge.rounds)]

    @initialize(seated=st.sets(NODES))
    def open_a_first_round(self, seated: set[str]) -> None:
        self.judge.schedule(in_seconds=0)
        self.judge.tick()
        for node in sorted(seated):
            self.judge.sit(self.judge.rounds[0], node)

    # ---- time

    @rule(seconds=st.sampled_from([1, 2, 5, 10]))
    def wait(self, seconds: int) -> None:
        self.judge.wait(seconds)

    @rule(seconds=st.sampled_from([8, 15, 16, 60, 7200]))
    def simulate_outage(self, seconds: int) -> None:
        self.judge.simulate_outage(seconds)

    @rule(seconds=st.sampled_from([20, 3600]))
    def set_all_clocks_back(self, seconds: int) -> None:
        self.judge.set_back += timedelta(seconds=seconds)

    # ---- ticks

    @rule(off=OFF, times=st.integers(1, 2))
    def tick(self, off: int, times: int) -> None:
        for _ in range(times):
            self.judge.tick(off=off * self.SKEW)

    @rule(target=due, off=OFF)
    def suspend_tick(self, off: int) -> list[DueRound]:
        self.judge.watch(off=off * self.SKEW)
        return self.judge.look(off=off * self.SKEW)

    @rule(seen=due)
    def resume_tick(self, seen: list[DueRound]) -> None:
        for due in seen:
            self.judge.act(due)

    @rule(gap=st.sampled_from([1, 14, 15, 16, 40, 3600]))
    def ticks_alone_close_open_rounds(self, gap: int) -> None:
        """However late ticks come, each brings the deadlines at least one TICK nearer."""
        opened = [r for r in self.judge.rounds if r.phase in (Phase.OPEN, Phase.SCORING)]
        clock = self.judge.read_clock(0)
        seen = min(clock, self.judge.watched_at or clock)
        ahead = max((r.deadlines.score_by - seen for r in opened), default=TICK)
        for _ in range(ahead // TICK + self.SKEW + 1):
            self.judge.wait(gap)
            self.judge.tick()
        assert {r.phase for r in opened} <= {Phase.CLOSED}

    # ---- the operator

    @precondition(lambda self: not self.judge.ended and self.judge.waiting < 2)
    @rule(in_seconds=st.sampled_from([0, 3, 30]))
    def schedule(self, in_seconds: int) -> None:
        self.judge.schedule(in_seconds=in_seconds)

    @rule()
    def pause_or_resume(self) -> None:
        self.judge.active = not self.judge.active

    @rule(early=st.booleans())
    def change_early_advance(self, early: bool) -> None:
        self.judge.early_advance = early

    @precondition(lambda self: self.judge.rounds)
    @rule(place=PLACES)
    def void(self, place: int) -> None:
        self.judge.void(self.pick(place))

    @precondition(lambda self: len(self.judge.rounds) > 4)
    @rule()
    def end_season(self) -> None:
        self.judge.end()

    # ---- nodes and graders

    @precondition(lambda self: self.open_round)
    @rule(nodes=st.sets(NODES, min_size=1), came_late=st.booleans(), off=OFF)
    def take_seats(self, nodes: set[str], came_late: bool, off: int) -> None:
        assert self.open_round is not None
        for node in sorted(nodes):
            self.judge.sit(self.open_round, node, came_late=came_late, off=off * self.SKEW)

    @precondition(lambda self: self.judge.rounds)
    @rule(node=NODES, place=PLACES, question=st.integers(0, QUESTIONS - 1), off=OFF)
    def answer_at_any_time(self, node: str, place: int, question: int, off: int) -> None:
        judge_round = self.pick(place)
        if self.judge.answer(judge_round, node, question, off=off * self.SKEW):
            assert judge_round.phase == Phase.OPEN
            self.acked.append((judge_round.number, node, question))

    @precondition(lambda self: self.open_round)
    @rule(node=NODES)
    def answer_all(self, node: str) -> None:
        assert self.open_round is not None
        for question in range(QUESTIONS):
            if self.judge.answer(self.open_round, node, question):
                self.acked.append((self.open_round.number, node, question))

    @precondition(lambda self: self.judge.rounds)
    @rule(node=NODES, place=PLACES)
    def grade(self, node: str, place: int) -> None:
        self.judge.grade(self.pick(place), node)

    # ---- invariants

    @invariant()
    def phases_follow_the_path(self) -> None:
        for judge_round in self.judge.rounds:
            assert set(zip(judge_round.path, judge_round.path[1:], strict=False)) <= ALLOWED, (
                judge_round.path
            )

    @invariant()
    def at_most_one_round_is_open(self) -> None:
        assert sum(judge_round.phase == Phase.OPEN for judge_round in self.judge.rounds) <= 1

    @invariant()
    def accepted_answers_are_stored_once(self) -> None:
        stored = [
            (judge_round.number, node, question)
            for judge_round in self.judge.rounds
            for node, question in judge_round.accepted
        ]
        assert sorted(stored) == sorted(self.acked)

    @invariant()
    def answers_to_closed_rounds_are_scored_or_left_out_once(self) -> None:
        for judge_round in self.judge.rounds:
            closed = Phase.CLOSED in judge_round.path
            settled = sorted(judge_round.scored + judge_round.left_out)
            assert settled == (sorted(judge_round.accepted) if closed else [])

    @invariant()
    def nodes_have_the_full_answering_time_despite_outages(self) -> None:
        full = timedelta(seconds=self.judge.open_seconds)
        for judge_round in self.judge.rounds:
            if not self.SKEW and judge_round.answering_time is not None:
                assert judge_round.answering_time + judge_round.slept >= full, judge_round.number


class SkewedClocks(ExactClocks):
    """The same with clocks of ticks and web processes that differ by up to ten seconds."""

    SKEW = 5


@pytest.mark.slow
@pytest.mark.parametrize("machine", [ExactClocks, SkewedClocks])
def test_no_sequence_of_events_loses_an_answer_or_blocks_a_round(
    machine: type[RuleBasedStateMachine],
) -> None:
    budget = settings(max_examples=100, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine, settings=budget)
