"""Concurrent graders, refreshes and operators, each with a database connection."""

import pytest
from django.db import OperationalError, connection, transaction

from judge.models import Answer, Counted, Round, Ruling, Score, Seat, Standing
from judge.services import grading
from judge.services.oversight import quarantine_node, recompute_round, void_round
from judge.services.patience import add_costs
from tests.judge.crew import PATIENCE_S, Crew, busy_grader, seated_round, wait_for_blocked_lock
from tests.judge.naive import naive_boards, stored_boards
from tests.judge.toys import OPEN_S, SCORING_S, Site, ToyVerifier

pytestmark = pytest.mark.django_db(transaction=True)


def test_concurrent_graders_skip_each_others_answers(
    site: Site, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge_round = seated_round(site, "amber", "birch")
    for name in ("amber", "birch"):
        site.submit(judge_round, name, "rrww")
    monkeypatch.setattr(grading, "BATCH", 5)
    with busy_grader(crew) as (verifier, other_grader):
        assert site.grade() == 3
        verifier.may_continue.set()
        assert other_grader.result(PATIENCE_S) == 5
    assert not set(site.toy.seen) & set(verifier.seen)
    assert not Answer.objects.filter(score=None).exists()


def test_many_graders_grade_every_answer_once(
    site: Site, crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"node-{i}" for i in range(10)]
    judge_round = seated_round(site, *names)
    for name in names:
        site.submit(judge_round, name, "rwrw")
    monkeypatch.setattr(grading, "BATCH", 3)

    def grade_all() -> int:
        graded = 0
        while found := site.grade():
            graded += found
        return graded

    # A grader may stop when others have claimed all remaining answers; none is graded twice.
    assert sum(crew.run_concurrently(grade_all, times=4)) == 40
    assert set(site.toy.seen.values()) == {1}


def test_a_grader_whose_connection_dies_releases_its_answers(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrww")
    with busy_grader(crew) as (verifier, other_grader):
        assert site.grade() == 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [verifier.backend])
            assert cursor.fetchone() == (True,)
        verifier.may_continue.set()
        with pytest.raises(OperationalError):
            other_grader.result(PATIENCE_S)
    assert site.grade() == 4
    assert Answer.objects.filter(solved=True).count() == 2


def test_a_closing_round_excludes_a_graders_answers_without_waiting(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, other_grader):
        assert len(site.advance(OPEN_S + SCORING_S)) == 1
        verifier.may_continue.set()
        assert other_grader.result(PATIENCE_S) == 0
    assert Score.objects.get().reason == Score.Reason.UNSCORED
    assert set(Answer.objects.values_list("score", flat=True)) == {None}


def test_verdicts_wait_for_a_round_that_is_closing(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, other_grader):
        with transaction.atomic():
            site.advance(OPEN_S + SCORING_S)
            verifier.may_continue.set()
            wait_for_blocked_lock()
        assert other_grader.result(PATIENCE_S) == 0
    assert set(Answer.objects.values_list("score", flat=True)) == {None}


def test_recomputing_waits_for_a_late_grader_and_overwrites_its_verdicts(
    site: Site, crew: Crew
) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    with busy_grader(crew) as (verifier, other_grader):
        site.advance(OPEN_S + SCORING_S)
        judge_round.refresh_from_db()
        now = site.clock.now
        recomputing = crew.start(
            lambda: recompute_round(
                judge_round, reason="?", actor=None, now=now, verifier=ToyVerifier()
            )
        )
        wait_for_blocked_lock()
        verifier.may_continue.set()
        assert other_grader.result(PATIENCE_S) == 0
        assert recomputing.result(PATIENCE_S) is not None
    assert Score.objects.get().score == 1


def test_a_grader_locks_seats_in_the_same_order_as_submissions(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber", "birch")
    amber, birch = (site.nodes[name] for name in ("amber", "birch"))
    # The order of the seats' primary keys is not that of the nodes'.
    Seat.objects.all().delete()
    first, second = (Seat.objects.create(round=judge_round, node=node) for node in (birch, amber))
    costs = [((judge_round.pk, node.pk), 1.0) for node in (amber, birch)]
    with transaction.atomic():
        Seat.objects.select_for_update().get(pk=first.pk)
        charging = crew.start(transaction.atomic(lambda: add_costs(costs)))
        wait_for_blocked_lock()
        Seat.objects.select_for_update(nowait=True).get(pk=second.pk)
    charging.result(PATIENCE_S)
    assert set(Seat.objects.values_list("grading_seconds", flat=True)) == {1.0}


# ---- standings


@pytest.mark.slow
def test_concurrent_refreshes_count_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="wwww")
    judge_round = seated_round(site, "amber", "birch")
    site.submit(judge_round, "amber", "rrrr")
    site.end(judge_round)
    changed = crew.run_concurrently(site.refresh, times=4)
    assert sorted(changed) == [False, False, False, True]
    assert site.board()["amber"].n == 8
    assert Counted.objects.filter(round=judge_round, window="season").count() == 1
    assert stored_boards(site.season) == naive_boards(site.season, now=site.clock.now)


def test_a_quarantine_during_a_refresh_is_not_lost(site: Site, crew: Crew) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="wwww")
    site.end(seated_round(site, "amber"))
    now = site.clock.now
    with transaction.atomic():
        site.refresh()
        deciding = crew.start(
            lambda: quarantine_node(site.nodes["amber"], reason="?", actor=None, now=now)
        )
        wait_for_blocked_lock()
    assert deciding.result(PATIENCE_S)
    assert site.board()["amber"].remark == "quarantined"
    assert Standing.objects.filter(remark="quarantined").exists()


def test_concurrent_operators_void_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber")
    judge_round = site.play(amber="rrrr")
    now = site.clock.now

    def void() -> bool:
        fresh = Round.objects.select_related("season").get(pk=judge_round.pk)
        return void_round(fresh, reason="?", actor=None, now=now)

    assert sorted(crew.run_concurrently(void, times=3)) == [False, False, True]
    assert Ruling.objects.count() == 1
    assert site.board() == {}


def test_a_round_voided_during_a_refresh_does_not_count(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    site.end(judge_round)
    now = site.clock.now
    with transaction.atomic():
        site.refresh()
        voiding = crew.start(lambda: void_round(judge_round, reason="?", actor=None, now=now))
        wait_for_blocked_lock()
    assert voiding.result(PATIENCE_S)
    assert site.board() == {}
    assert not Counted.objects.exists()
