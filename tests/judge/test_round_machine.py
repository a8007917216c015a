"""The judge's services in any order, against a real database: nothing is lost or counted twice.

The leaderboard is booked round by round; here it is compared with one drawn up from scratch.
"""

from collections import defaultdict
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
from judge.models import Answer, Ledger, Round, Score, Season, Window
from judge.services.inspection import inspect_closed_rounds
from judge.services.oversight import quarantine_node, recompute_round, release_node, void_round
from judge.services.rounds import watch_seasons
from judge.services.scheduling import ensure_next_round
from judge.services.seasons import enrol, pause_season, resume_season, start_season
from swarm_protocol.errors import RefusedError
from swarm_web.nodes.models import Node
from tests.judge.naive import kept_board, naive_board, scores_from_answers
from tests.judge.toys import QUESTIONS, Clock, Site, ToyVerifier, make_toy_season

NAMES = ("amber", "birch", "coral", "bare")
NODES = st.sampled_from(NAMES)
LETTERS = st.text("rw-", min_size=QUESTIONS, max_size=QUESTIONS)
ORDER = [Phase.SCHEDULED, Phase.OPEN, Phase.SCORING, Phase.CLOSED, Phase.VOID]


class JudgeInPostgres(RuleBasedStateMachine):
    """One season, four nodes, beats, graders, and an operator who changes his mind."""

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
        # Whether the leaderboard was brought up to date since anything changed.
        self.fresh = True

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.rollback.__exit__(None, None, None)

    @initialize(
        recent=st.integers(1, 3),
        minimum=st.sampled_from([1, 6]),
        late=st.sampled_from(Season.LateJoiners.values),
    )
    def begin(self, recent: int, minimum: int, late: str) -> None:
        self._change_rules(recent_rounds=recent, minimum_questions=minimum, late_joiners=late)
        self.site.join("amber", "birch")
        self.site.join("coral", arm="isolated")
        self.site.join("bare", arm="base")

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

    # ---- beats and graders

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
    def break_or_mend_a_dataset(self, dataset: str) -> None:
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
    def sit_down(self, name: str) -> None:
        judge_round = self._open_round()
        assert judge_round is not None
        with suppress(RefusedError):  # It may have come late.
            self.site.sit(judge_round, name)

    @precondition(lambda self: self.phases)
    @rule(name=NODES, letters=LETTERS, place=st.integers(0, 2))
    def hand_in_at_any_time(self, name: str, letters: str, place: int) -> None:
        rounds = list(Round.objects.order_by("-number"))
        self._hand_in(rounds[place % len(rounds)], name, letters)

    def _hand_in(self, judge_round: Round, name: str, letters: str) -> None:
        if not letters.strip("-"):
            return
        receipt = self.site.hand_in(judge_round, name, letters)
        stored = Answer.objects.filter(node=self.site.nodes[name], question__in=receipt.accepted)
        for question in receipt.accepted:
            assert (question, name) not in self.acked
            self.acked[question, name] = stored.get(question=question).text

    @rule(sheets=st.dictionaries(NODES, LETTERS, min_size=2))
    def play_a_round(self, sheets: dict[str, str]) -> None:
        self._change_rules(paused=False)
        while (judge_round := self._open_round()) is not None:
            self.site.end(judge_round)
        Round.objects.filter(phase=Phase.SCHEDULED).delete()
        judge_round = self.site.open(*sheets)
        for name, letters in sheets.items():
            self.site.sit(judge_round, name)
            self._hand_in(judge_round, name, letters)
        self.site.end(judge_round)
        self.fresh = False

    @rule(name=NODES, model=st.sampled_from(["tiny", "small"]))
    def change_model(self, name: str, model: str) -> None:
        Node.objects.filter(name=name).update(model=model)

    @rule(name=st.sampled_from(["amber", "birch", "coral"]), wish=st.sampled_from(Node.Arm.values))
    def wish_for_an_arm(self, name: str, wish: str) -> None:
        enrol(self.site.nodes[name], self.site.season, wish=wish)

    # ---- the operator

    @precondition(lambda self: self.phases)
    @rule(place=st.integers(0, 3))
    def void(self, place: int) -> None:
        rounds = list(Round.objects.order_by("-number"))
        judge_round = rounds[place % len(rounds)]
        if void_round(judge_round, reason="?", actor=None, now=self.site.clock.now):
            self.fresh = True

    @precondition(lambda self: self._any_closed())
    @rule(place=st.integers(0, 3), forged=st.sampled_from([None, True, False]))
    def recompute(self, place: int, forged: bool | None) -> None:
        judge_round = self._closed_round(place)
        if forged is not None:
            graded = Answer.objects.filter(question__round=judge_round).exclude(solved=None)
            graded.update(solved=forged)
        recompute_round(
            judge_round, reason="?", actor=None, now=self.site.clock.now, verifier=ToyVerifier()
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
    def change_k(self, recent: int) -> None:
        self._change_rules(recent_rounds=recent)
        self.fresh = False

    @rule(seconds=st.sampled_from([0, 0, 0, 40_000, 600_000]))
    def keep_books(self, seconds: int) -> None:
        self.site.refresh(seconds)
        inspect_closed_rounds(now=self.site.clock.now)
        self.fresh = True

    # ---- what always holds

    @invariant()
    def rounds_only_go_on(self) -> None:
        phases = {pk: ORDER.index(Phase(p)) for pk, p in Round.objects.values_list("pk", "phase")}
        for pk, was in self.phases.items():
            assert phases.get(pk, ORDER.index(Phase.VOID)) >= was
        self.phases = phases

    @invariant()
    def at_most_one_round_is_open(self) -> None:
        assert Round.objects.filter(phase=Phase.OPEN).count() <= 1

    @invariant()
    def every_acknowledged_answer_is_there_as_it_was_given(self) -> None:
        stored = {
            (str(answer.question_id), answer.node.name): answer.text
            for answer in Answer.objects.select_related("node")
        }
        assert stored == self.acked

    @invariant()
    def nothing_is_graded_twice(self) -> None:
        assert set(self.site.toy.seen.values()) <= {1}

    @invariant()
    def scores_are_what_the_answers_come_to(self) -> None:
        for judge_round in Round.objects.all():
            scores = list(judge_round.scores.all())
            if judge_round.phase == Phase.CLOSED:
                assert len(scores) == judge_round.seats.count()
                scored = {s.node_id: _cells(s) for s in scores if s.status == "scored"}
                assert scored == scores_from_answers(judge_round)
            elif judge_round.phase != Phase.VOID:
                assert scores == []

    @invariant()
    def the_leaderboard_equals_one_from_scratch(self) -> None:
        if self.fresh:
            season, now = self.site.season, self.site.clock.now
            for window in Window:
                kept = kept_board(season, window.value)
                assert kept == naive_board(season, window.value, now=now), window

    @invariant()
    def the_ledgers_deviations_add_up(self) -> None:
        if not self.fresh:
            return
        sums: defaultdict[int, list[float]] = defaultdict(list)
        for score in Score.objects.filter(round__phase=Phase.CLOSED).exclude(deviation=None):
            sums[score.node_id].append(score.deviation or 0.0)
        for ledger in Ledger.objects.all():
            own = sums[ledger.node_id]
            assert ledger.deviation_rounds == len(own)
            assert isclose(ledger.deviations, sum(own), abs_tol=1e-9)


def _cells(score: Score) -> dict[str, tuple[int, int]]:
    return {dataset: (correct, n) for dataset, (correct, n) in score.cells.items()}


def test_whatever_happens_the_books_are_right(db: None) -> None:
    budget = settings(
        max_examples=25,
        stateful_step_count=20,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    run_state_machine_as_test(JudgeInPostgres, settings=budget)
