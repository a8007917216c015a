"""Workers, beats and nodes at once, over connections of their own."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import pytest
from django.db import OperationalError, connection, transaction

from judge.models import Answer, Counted, Round, Ruling, Score, Season, Seat, Standing
from judge.services import grading
from judge.services.grading import grade_batch
from judge.services.oversight import quarantine_node, recompute_round, void_round
from judge.services.rounds import advance_rounds, watch_seasons
from judge.services.seasons import enrol
from tests.judge.naive import kept_boards, naive_boards
from tests.judge.toys import OPEN_S, SCORING_S, Site, ToyVerifier
from tests.processes import eventually

PATIENCE_S = 20
Result = TypeVar("Result")

pytestmark = pytest.mark.django_db(transaction=True)


class Crew:
    """Threads that each work over a database connection of their own."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._pool = pool

    def start(self, work: Callable[[], Result]) -> Future[Result]:
        def work_and_hang_up() -> Result:
            try:
                lose_patience()
                return work()
            finally:
                connection.close()

        return self._pool.submit(work_and_hang_up)

    def all_at_once(self, work: Callable[[], Result], *, times: int) -> list[Result]:
        """Let several do the same at the same moment."""
        start = threading.Barrier(times)

        def work_together() -> Result:
            start.wait(PATIENCE_S)
            return work()

        started = [self.start(work_together) for _ in range(times)]
        return [future.result(PATIENCE_S) for future in started]


def lose_patience() -> None:
    """Let this connection fail rather than wait for ever, where a lock is not as it should be."""
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{PATIENCE_S}s'")


@pytest.fixture
def crew(transactional_db: None) -> Iterator[Crew]:
    lose_patience()
    with ThreadPoolExecutor(4) as pool:
        yield Crew(pool)
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


class SlowVerifier(ToyVerifier):
    """Waits in the middle of grading until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.busy, self.may_go_on = threading.Event(), threading.Event()
        self.backend: int | None = None
        self.on_grading = self._wait

    def _wait(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            (self.backend,) = cursor.fetchone()
        self.busy.set()
        assert self.may_go_on.wait(PATIENCE_S)


@contextmanager
def busy_grader(crew: Crew) -> Iterator[tuple[SlowVerifier, Future[int]]]:
    """Start a grader and wait until it has claimed answers and is grading them."""
    verifier = SlowVerifier()
    grading_them = crew.start(lambda: grade_batch(verifier=verifier))
    try:
        assert verifier.busy.wait(PATIENCE_S)
        yield verifier, grading_them
    finally:
        verifier.may_go_on.set()


def wait_until_somebody_waits() -> None:
    eventually(is_anybody_waiting, within_s=PATIENCE_S, what="somebody waits for a lock")


def is_anybody_waiting() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def seated_round(site: Site, *names: str) -> Round:
    """Return an open round in which these nodes have taken the questions."""
    site.join(*(name for name in names if name not in site.nodes))
    judge_round = site.open(*names)
    site.sit(judge_round, *names)
    return judge_round


# ---- beats


def test_beats_at_once_open_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber")
    made = site.schedule()
    now = site.clock.now
    moved = crew.all_at_once(lambda: len(advance_rounds(now=now)), times=4)
    assert sorted(moved) == [0, 0, 0, 1]
    assert made.seats.count() == 1


def test_beats_at_once_close_a_round_once(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.grade()
    now = site.clock.advance(1)
    moved = crew.all_at_once(lambda: len(advance_rounds(now=now)), times=4)
    # One may have ended the answering and another the scoring, but nobody did both again.
    assert 1 <= sum(moved) <= 2
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.CLOSED
    assert Score.objects.count() == 1


def test_beats_at_once_open_one_of_two_rounds_that_are_due(site: Site, crew: Crew) -> None:
    site.schedule()
    site.schedule()
    now = site.clock.now
    moved = crew.all_at_once(lambda: len(advance_rounds(now=now)), times=4)
    assert sum(moved) == 1
    assert Round.objects.filter(phase=Round.Phase.OPEN).count() == 1


def test_beats_at_once_give_lost_time_back_once(site: Site, crew: Crew) -> None:
    judge_round = site.open()
    watch_seasons(now=site.clock.now)
    now = site.clock.advance(1001)
    crew.all_at_once(lambda: watch_seasons(now=now), times=4)
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert (judge_round.closes_at - before).total_seconds() == 1000


# ---- nodes


def test_senders_of_one_node_at_once_are_counted_once(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    receipts = crew.all_at_once(lambda: site.hand_in(judge_round, "amber", "rrrr"), times=4)
    assert sorted(len(receipt.accepted) for receipt in receipts) == [0, 0, 0, 4]
    assert sorted(len(receipt.duplicate) for receipt in receipts) == [0, 4, 4, 4]
    assert Answer.objects.count() == 4
    assert Seat.objects.get().completed_at is not None


def test_a_node_that_hands_in_its_halves_at_once_is_complete(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        site.hand_in(judge_round, "amber", "rr--")
        sending = crew.start(lambda: site.hand_in(judge_round, "amber", "--rr"))
        wait_until_somebody_waits()
    assert len(sending.result(PATIENCE_S).accepted) == 2
    assert Seat.objects.get().completed_at is not None


def test_connections_of_one_node_at_once_take_one_seat(site: Site, crew: Crew) -> None:
    site.join("amber")
    judge_round = site.open("amber")
    crew.all_at_once(lambda: site.sit(judge_round, "amber"), times=4)
    assert Seat.objects.count() == 1


def test_connections_of_one_node_at_once_get_one_arm(site: Site, crew: Crew) -> None:
    (node,) = site.join("amber")
    arms = crew.all_at_once(lambda: enrol(node, site.season, wish="isolated"), times=4)
    assert arms == 4 * ["isolated"]


def test_a_round_does_not_end_early_while_a_node_takes_its_seat(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.join("late")
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    now = site.clock.now
    with transaction.atomic():
        site.sit(judge_round, "late")
        ending = crew.start(lambda: advance_rounds(now=now))
        wait_until_somebody_waits()
    assert ending.result(PATIENCE_S) == []


def test_an_answer_that_races_with_the_end_of_answering_is_in_time_or_refused(
    site: Site, crew: Crew
) -> None:
    """Whoever comes first: what is acknowledged came in time, and counts."""
    names = [f"node-{i}" for i in range(12)]
    judge_round = seated_round(site, *names)
    waiting = iter(names)
    start = threading.Barrier(4)

    def hand_in_all() -> list[str]:
        start.wait(PATIENCE_S)
        accepted = []
        for name in waiting:
            accepted += site.hand_in(judge_round, name, "rrrr").accepted
        return accepted

    def end() -> None:
        start.wait(PATIENCE_S)
        advance_rounds(now=judge_round.closes_at)

    senders = [crew.start(hand_in_all) for _ in range(3)]
    ending = crew.start(end)
    ending.result(PATIENCE_S)
    acked = [question for sender in senders for question in sender.result(PATIENCE_S)]
    site.grade()
    site.advance(OPEN_S)
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.CLOSED
    assert len(acked) == Answer.objects.count()
    assert not Answer.objects.filter(received_at__gte=judge_round.closes_at).exists()
    assert sum(Score.objects.values_list("correct", flat=True)) == len(acked)


def test_an_answer_that_is_being_stored_when_answering_ends_counts(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        receipt = site.hand_in(judge_round, "amber", "rrrr")
        ending = crew.start(lambda: advance_rounds(now=judge_round.closes_at))
        wait_until_somebody_waits()
    ending.result(PATIENCE_S)
    assert len(receipt.accepted) == 4
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.SCORING
    site.grade()
    site.advance(OPEN_S)
    assert Score.objects.get().score == 1


def test_an_answer_that_waits_for_the_end_of_answering_is_late(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        Round.objects.select_for_update().get(pk=judge_round.pk)
        sending = crew.start(lambda: site.hand_in(judge_round, "amber", "rrrr"))
        wait_until_somebody_waits()
        advance_rounds(now=judge_round.closes_at)
    assert sending.result(PATIENCE_S).accepted == []
    assert not Answer.objects.exists()


# ---- graders


def test_graders_at_once_pass_over_each_others_answers(
    site: Site, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = seated_round(site, "amber", "birch")
    for name in ("amber", "birch"):
        site.hand_in(judge_round, name, "rrww")
    monkeypatch.setattr(grading, "BATCH", 5)
    with busy_grader(crew) as (verifier, grading_them):
        assert site.grade() == 3
        verifier.may_go_on.set()
        assert grading_them.result(PATIENCE_S) == 5
    assert not set(site.toy.seen) & set(verifier.seen)
    assert not Answer.objects.filter(score=None).exists()


def test_many_graders_grade_every_answer_once(
    site: Site, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"node-{i}" for i in range(10)]
    judge_round = seated_round(site, *names)
    for name in names:
        site.hand_in(judge_round, name, "rwrw")
    monkeypatch.setattr(grading, "BATCH", 3)

    def grade_all() -> int:
        graded = 0
        while found := site.grade():
            graded += found
        return graded

    # One who found all that was left claimed by others may leave; nobody finds it twice.
    assert sum(crew.all_at_once(grade_all, times=4)) == 40
    assert set(site.toy.seen.values()) == {1}


def test_a_grader_whose_connection_dies_gives_its_answers_back(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrww")
    with busy_grader(crew) as (verifier, grading_them):
        assert site.grade() == 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [verifier.backend])
            assert cursor.fetchone() == (True,)
        verifier.may_go_on.set()
        with pytest.raises(OperationalError):
            grading_them.result(PATIENCE_S)
    assert site.grade() == 4
    assert Answer.objects.filter(solved=True).count() == 2


def test_a_round_that_closes_does_not_wait_for_a_grader_and_leaves_its_answers_out(
    site: Site, crew: Crew
) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, grading_them):
        assert len(site.advance(OPEN_S + SCORING_S)) == 1
        verifier.may_go_on.set()
        assert grading_them.result(PATIENCE_S) == 0
    assert Score.objects.get().reason == Score.Reason.UNSCORED
    assert set(Answer.objects.values_list("score", flat=True)) == {None}


def test_verdicts_wait_for_a_round_that_is_closing(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, grading_them):
        with transaction.atomic():
            site.advance(OPEN_S + SCORING_S)
            verifier.may_go_on.set()
            wait_until_somebody_waits()
        assert grading_them.result(PATIENCE_S) == 0
    assert set(Answer.objects.values_list("score", flat=True)) == {None}


def test_recomputing_waits_for_a_grader_that_is_late_and_has_the_last_word(
    site: Site, crew: Crew
) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, grading_them):
        site.advance(OPEN_S + SCORING_S)
        judge_round.refresh_from_db()
        now = site.clock.now
        recomputing = crew.start(
            lambda: recompute_round(
                judge_round, reason="?", actor=None, now=now, verifier=ToyVerifier()
            )
        )
        wait_until_somebody_waits()
        verifier.may_go_on.set()
        assert grading_them.result(PATIENCE_S) == 0
        assert recomputing.result(PATIENCE_S) is not None
    assert Score.objects.get().score == 1


# ---- books


def test_refreshes_at_once_count_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="wwww")
    judge_round = seated_round(site, "amber", "birch")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    changed = crew.all_at_once(site.refresh, times=4)
    assert sorted(changed) == [False, False, False, True]
    assert site.board()["amber"].n == 8
    assert Counted.objects.filter(round=judge_round, window="season").count() == 1
    assert kept_boards(site.season) == naive_boards(site.season, now=site.clock.now)


def test_a_quarantine_during_a_refresh_is_not_forgotten(site: Site, crew: Crew) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="wwww")
    site.end(seated_round(site, "amber"))
    now = site.clock.now
    with transaction.atomic():
        site.refresh()
        deciding = crew.start(
            lambda: quarantine_node(site.nodes["amber"], reason="?", actor=None, now=now)
        )
        wait_until_somebody_waits()
    assert deciding.result(PATIENCE_S)
    assert site.board()["amber"].remark == "quarantined"
    assert Standing.objects.filter(remark="quarantined").exists()


def test_operators_at_once_void_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber")
    judge_round = site.play(amber="rrrr")
    now = site.clock.now

    def void() -> bool:
        fresh = Round.objects.select_related("season").get(pk=judge_round.pk)
        return void_round(fresh, reason="?", actor=None, now=now)

    assert sorted(crew.all_at_once(void, times=3)) == [False, False, True]
    assert Ruling.objects.count() == 1
    assert site.board() == {}


def test_a_round_that_is_void_while_a_refresh_counts_it_counts_no_more(
    site: Site, crew: Crew
) -> None:
    judge_round = seated_round(site, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    now = site.clock.now
    with transaction.atomic():
        site.refresh()
        voiding = crew.start(lambda: void_round(judge_round, reason="?", actor=None, now=now))
        wait_until_somebody_waits()
    assert voiding.result(PATIENCE_S)
    assert site.board() == {}
    assert not Counted.objects.exists()
