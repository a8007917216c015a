"""The judge's services in any order, against a real database: nothing is lost or counted twice.

The leaderboard is updated round by round; here it is compared with one computed from scratch.
"""

from collections import Counter, defaultdict
from contextlib import suppress
from math import isclose

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from judge.engine import Phase
from judge.models import Answer, Ledger, Round, Season, Window
from judge.services.inspection import inspect_closed_rounds
from judge.services.oversight import quarantine_node, recompute_round, release_node, void_round
from judge.services.rounds import watch_seasons
from judge.services.scheduling import ensure_next_round
from judge.services.seasons import enrol, pause_season, resume_season, start_season
from swarm_protocol.errors import RefusedError
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.verdicts import Verdict
from swarm_web.nodes.models import Node
from tests.judge.naive import SeasonData, stored_boards
from tests.judge.toys import Clock, Site, ToyVerifier, make_toy_season

pytestmark = pytest.mark.slow

NAMES = ("amber", "birch", "coral", "bare")
NODES = st.sampled_from(NAMES)
# Enough for one round to rank a node that solves everything above one that solves nothing.
QUESTIONS = 12
LETTERS = st.one_of(
    st.sampled_from(["r" * QUESTIONS, "w" * QUESTIONS]),
    st.text("rw-", min_size=QUESTIONS, max_size=QUESTIONS),
)
SHEETS = st.dictionaries(NODES, LETTERS, min_size=2)
ORDER = [Phase.SCHEDULED, Phase.OPEN, Phase.SCORING, Phase.CLOSED, Phase.VOID]


class InvertingVerifier(ToyVerifier):
    """A verifier that swaps correct and wrong verdicts."""

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        return [
            [_invert(verdict) for verdict in group]
            for group in super().score_many(batch, rules=rules)
        ]


def _invert(verdict: Verdict) -> Verdict:
    return Verdict(1 - verdict.score, "wrong" if verdict.solved else "right")


class JudgeInPostgres(RuleBasedStateMachine):
    """One season, four nodes, ticks, graders, and an operator who revises decisions."""

    def __init__(self) -> None:
        super().__init__()
        self.rollback = transaction.atomic()
        self.rollback.__enter__()
        season = make_toy_season()
        self.site = Site(season, Clock())
        start_season(season, now=self.site.clock.now)
        # Acknowledged answers: (question, node) -> text.
        self.acked: dict[tuple[str, str], str] = {}
        self.phases: dict[int, int] = {}
        # Whether the leaderboard was updated after the last change.
        self.fresh = True

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.rollback.__exit__(None, None, None)

    @initialize(
        recent=st.integers(1, 3),
        minimum=st.sampled_from([1, 20]),
        late=st.sampled_from(Season.LateJoiners.values),
        attendance=st.sampled_from([0, 90]),
        shared=st.booleans(),
        history=st.lists(SHEETS, min_size=1, max_size=3),
    )
    def begin(
        self,
        recent: int,
        minimum: int,
        late: str,
        attendance: int,
        shared: bool,
        history: list[dict[str, str]],
    ) -> None:
        self._change_rules(
            questions_per_round=QUESTIONS,
            recent_rounds=recent,
            minimum_questions=minimum,
            late_joiners=late,
            minimum_attendance=attendance,
        )
        self.site.join("amber", "birch")
        if shared:
            self.site.own("vera", "amber", "birch")
        self.site.join("coral", arm="isolated")
        self.site.join("bare", arm="base")
        for sheets in history:
            self.play_a_round(sheets)

    def _change_rules(self, **rules: object) -> None:
        Season.objects.filter(pk=self.site.season.pk).update(**rules)
        self.site.season.refresh_from_db()

    def _open_round(self) -> Round | None:
        return Round.objects.filter(phase=Phase.OPEN).first()

    def _closed_round(self, place: int) -> Round:
        closed = list(Round.objects.filter(phase=Phase.CLOSED).order_by("-number"))
        return closed[place % len(closed)]

    def _any_closed(self) -> bool:
        return Round.objects.filter(phase=Phase.CLOSED).exists()

    # ---- ticks and graders

    @rule(seconds=st.sampled_from([1, 5, 14, 35, 90]), times=st.integers(1, 2))
    def tick(self, seconds: int, times: int) -> None:
        now = self.site.clock.advance(seconds)
        self.fresh = False
        for _ in range(times):
            watch_seasons(now=now)
            self.site.advance()
            ensure_next_round(self.site.season, now=now, verifier=self.site.toy)

    @rule()
    def grade(self) -> None:
        self.site.grade()

    @rule(dataset=st.sampled_from(["gcd", "chain_sum"]))
    def break_or_repair_a_dataset(self, dataset: str) -> None:
        self.site.toy.broken ^= {dataset}

    @precondition(lambda self: self._open_round())
    @rule()
    def fail_while_grading(self) -> None:
        def fail() -> None:
            raise OSError("no child")

        self.site.toy.on_grading = fail
        if Answer.objects.filter(score=None, question__round__phase=Phase.OPEN).exists():
            with pytest.raises(OSError, match="no child"):
                self.site.grade()
        self.site.toy.on_grading = lambda: None

    # ---- nodes

    @precondition(lambda self: self._open_round())
    @rule(name=NODES)
    def take_seat(self, name: str) -> None:
        judge_round = self._open_round()
        assert judge_round is not None
        with suppress(RefusedError):  # The node may be late.
            self.site.sit(judge_round, name)

    @rule(sheets=SHEETS)
    def submit(self, sheets: dict[str, str]) -> None:
        if judge_round := self._open_round():
            for name, letters in sheets.items():
                self._submit(judge_round, name, letters)

    @rule(name=NODES, letters=LETTERS, place=st.integers(0, 2))
    def submit_at_any_time(self, name: str, letters: str, place: int) -> None:
        rounds = list(Round.objects.order_by("-number"))
        self._submit(rounds[place % len(rounds)], name, letters)

    def _submit(self, judge_round: Round, name: str, letters: str) -> None:
        if not letters.strip("-"):
            return
        receipt = self.site.submit(judge_round, name, letters)
        for answer in self.site.write(judge_round, name, letters):
            if answer.question in receipt.accepted:
                assert (answer.question, name) not in self.acked
                self.acked[answer.question, name] = answer.text

    @rule(sheets=SHEETS)
    def play_a_round(self, sheets: dict[str, str]) -> None:
        judge_round = self._begin_round(sheets)
        for name, letters in sheets.items():
            self._submit(judge_round, name, letters)
        self.site.end(judge_round)

    @rule(sheets=SHEETS)
    def begin_a_round(self, sheets: dict[str, str]) -> None:
        self._begin_round(sheets)

    def _begin_round(self, sheets: dict[str, str]) -> Round:
        """Open a round now and let these nodes request the questions."""
        resume_season(self.site.season)
        while (other := self._open_round()) is not None:
            self.site.end(other)
        Round.objects.filter(phase=Phase.SCHEDULED).delete()
        judge_round = self.site.open(*sheets)
        self.site.sit(judge_round, *sheets)
        self.fresh = False
        return judge_round

    @rule(name=NODES, model=st.sampled_from(["tiny", "small"]))
    def change_model(self, name: str, model: str) -> None:
        Node.objects.filter(name=name).update(model=model)

    @rule(
        name=st.sampled_from(["amber", "birch", "coral"]),
        preferred=st.sampled_from(Node.Arm.values),
    )
    def prefer_an_arm(self, name: str, preferred: str) -> None:
        enrol(self.site.nodes[name], self.site.season, preferred=preferred)

    # ---- the operator

    @rule(place=st.integers(0, 3))
    def void(self, place: int) -> None:
        rounds = list(Round.objects.order_by("-number"))
        judge_round = rounds[place % len(rounds)]
        if void_round(judge_round, reason="?", actor=None, now=self.site.clock.now):
            self.fresh = True

    @precondition(lambda self: self._any_closed())
    @rule(place=st.integers(0, 3), verifier=st.sampled_from([ToyVerifier, InvertingVerifier]))
    def recompute(self, place: int, verifier: type[ToyVerifier]) -> None:
        recompute_round(
            self._closed_round(place),
            reason="?",
            actor=None,
            now=self.site.clock.now,
            verifier=verifier(),
        )
        self.fresh = True

    @rule(name=NODES)
    def quarantine_or_release(self, name: str) -> None:
        node = self.site.nodes[name]
        for decide in (quarantine_node, release_node):
            if decide(node, reason="?", actor=None, now=self.site.clock.now):
                break

    @rule()
    def pause_or_resume(self) -> None:
        if not pause_season(self.site.season):
            resume_season(self.site.season)
        self.site.season.refresh_from_db()

    @rule(recent=st.integers(1, 3))
    def change_recent_rounds(self, recent: int) -> None:
        self._change_rules(recent_rounds=recent)
        self.fresh = False

    @rule(seconds=st.sampled_from([0, 0, 0, 40_000, 600_000]))
    def update_standings(self, seconds: int) -> None:
        self.site.refresh(seconds)
        inspect_closed_rounds(now=self.site.clock.now)
        self.fresh = True

    # ---- invariants

    @invariant()
    def phases_only_advance_and_at_most_one_round_is_open(self) -> None:
        phases = {pk: ORDER.index(Phase(p)) for pk, p in Round.objects.values_list("pk", "phase")}
        for pk, was in self.phases.items():
            assert phases.get(pk, ORDER.index(Phase.VOID)) >= was
        assert list(phases.values()).count(ORDER.index(Phase.OPEN)) <= 1
        self.phases = phases

    @invariant()
    def no_answer_is_graded_twice(self) -> None:
        assert set(self.site.toy.seen.values()) <= {1}

    @invariant()
    def stored_results_match_the_answers(self) -> None:
        data = SeasonData(self.site.season)
        self._check_answers(data)
        self._check_scores(data)
        if self.fresh:
            self._check_boards(data)
            self._check_ledgers(data)

    def _check_answers(self, data: SeasonData) -> None:
        """Every acknowledged answer is stored unchanged, and no other."""
        names = {pk: node.name for pk, node in data.nodes.items()}
        stored = {(str(a.question_id), names[a.node_id]): a.text for a in data.answers}
        assert stored == self.acked

    def _check_scores(self, data: SeasonData) -> None:
        """Closed rounds have a score for each seat that matches the answers; others have none."""
        seats = Counter(seat.round_id for seat in data.seats)
        scores = Counter(score.round_id for score in data.scores)
        for judge_round in data.rounds:
            if judge_round.phase == Phase.CLOSED:
                assert scores[judge_round.pk] == seats[judge_round.pk]
                assert data.scored_cells(judge_round) == data.marked_cells(judge_round)
            elif judge_round.phase != Phase.VOID:
                assert scores[judge_round.pk] == 0

    def _check_boards(self, data: SeasonData) -> None:
        """The stored leaderboard equals one computed from scratch."""
        boards = stored_boards(self.site.season)
        for window in Window.values:
            assert boards.get(window, {}) == data.build_board(window, now=self.site.clock.now), (
                window
            )

    def _check_ledgers(self, data: SeasonData) -> None:
        """The ledgers' deviations are the sums of the scores' deviations."""
        closed = {judge_round.pk for judge_round in data.closed}
        sums: defaultdict[int, list[float]] = defaultdict(list)
        for score in data.scores:
            if score.round_id in closed and score.deviation is not None:
                sums[score.node_id].append(score.deviation)
        for ledger in Ledger.objects.all():
            own = sums[ledger.node_id]
            assert ledger.deviation_rounds == len(own)
            assert isclose(ledger.deviations, sum(own), abs_tol=1e-9)


def test_no_sequence_of_events_breaks_the_standings(db: None) -> None:
    budget = settings(
        max_examples=10,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(JudgeInPostgres, settings=budget)
