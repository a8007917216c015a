"""Concurrent ticks and nodes, each with a database connection."""

import threading

import pytest
from django.db import transaction

from judge.models import Answer, ChainLink, Round, Score, Season, Seat
from judge.services.rounds import advance_rounds, watch_seasons
from judge.services.seasons import end_season, enrol
from tests.judge.crew import PATIENCE_S, Crew, seated_round, wait_for_blocked_lock
from tests.judge.toys import OPEN_S, Site

pytestmark = pytest.mark.django_db(transaction=True)


def test_concurrent_ticks_open_a_round_once(site: Site, crew: Crew) -> None:
    site.join("amber")
    judge_round = site.schedule()
    now = site.clock.now
    moved = crew.run_concurrently(lambda: len(advance_rounds(now=now)), times=4)
    assert sorted(moved) == [0, 0, 0, 1]
    assert judge_round.seats.count() == 1


def test_concurrent_ticks_close_a_round_once(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    site.grade()
    now = site.clock.advance(1)
    moved = crew.run_concurrently(lambda: len(advance_rounds(now=now)), times=4)
    # One tick may have ended the answering and another the scoring, but neither happens twice.
    assert 1 <= sum(moved) <= 2
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.CLOSED
    assert Score.objects.count() == 1


def test_concurrent_ticks_open_one_of_two_due_rounds(site: Site, crew: Crew) -> None:
    site.schedule()
    site.schedule()
    now = site.clock.now
    moved = crew.run_concurrently(lambda: len(advance_rounds(now=now)), times=4)
    assert sum(moved) == 1
    assert Round.objects.filter(phase=Round.Phase.OPEN).count() == 1


def test_a_round_deleted_during_a_tick_does_not_affect_others(site: Site, crew: Crew) -> None:
    gone, other = site.schedule(), site.schedule(in_seconds=1)
    with transaction.atomic():
        gone.delete()
        advancing = crew.start(lambda: site.advance(1))
        wait_for_blocked_lock()
    assert advancing.result(PATIENCE_S) == [other]


def test_a_round_that_is_being_opened_when_its_season_ends_is_not_withdrawn(
    site: Site, crew: Crew
) -> None:
    judge_round = site.schedule()
    now = site.clock.now
    with transaction.atomic():
        site.advance()
        ending = crew.start(lambda: end_season(site.season, now=now))
        wait_for_blocked_lock()
    assert ending.result(PATIENCE_S)
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.OPEN
    assert not ChainLink.objects.filter(kind="withdrawn").exists()


def test_concurrent_ticks_extend_deadlines_once(site: Site, crew: Crew) -> None:
    judge_round = site.open()
    watch_seasons(now=site.clock.now)
    now = site.clock.advance(1001)
    crew.run_concurrently(lambda: watch_seasons(now=now), times=4)
    before = judge_round.closes_at
    judge_round.refresh_from_db()
    assert (judge_round.closes_at - before).total_seconds() == 1000


# ---- nodes


def test_concurrent_submissions_of_one_node_count_once(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    receipts = crew.run_concurrently(lambda: site.submit(judge_round, "amber", "rrrr"), times=4)
    assert sorted(len(receipt.accepted) for receipt in receipts) == [0, 0, 0, 4]
    assert sorted(len(receipt.duplicate) for receipt in receipts) == [0, 4, 4, 4]
    assert Answer.objects.count() == 4
    assert Seat.objects.get().completed_at is not None


def test_a_node_that_submits_two_halves_concurrently_is_complete(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        site.submit(judge_round, "amber", "rr--")
        sending = crew.start(lambda: site.submit(judge_round, "amber", "--rr"))
        wait_for_blocked_lock()
    assert len(sending.result(PATIENCE_S).accepted) == 2
    assert Seat.objects.get().completed_at is not None


def test_concurrent_connections_of_one_node_take_one_seat(site: Site, crew: Crew) -> None:
    site.join("amber")
    judge_round = site.open("amber")
    crew.run_concurrently(lambda: site.sit(judge_round, "amber"), times=4)
    assert Seat.objects.count() == 1


def test_concurrent_connections_of_one_node_get_one_arm(site: Site, crew: Crew) -> None:
    (node,) = site.join("amber")
    arms = crew.run_concurrently(lambda: enrol(node, site.season, preferred="isolated"), times=4)
    assert arms == 4 * ["isolated"]


def test_a_round_does_not_end_early_while_a_node_takes_its_seat(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    site.submit(judge_round, "amber", "rrrr")
    site.join("late")
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    now = site.clock.now
    with transaction.atomic():
        site.sit(judge_round, "late")
        ending = crew.start(lambda: advance_rounds(now=now))
        wait_for_blocked_lock()
    assert ending.result(PATIENCE_S) == []


def test_an_answer_racing_with_the_end_of_answering_is_stored_or_late(
    site: Site, crew: Crew
) -> None:
    """Whichever comes first, every acknowledged answer was in time and counts."""
    names = [f"node-{i}" for i in range(12)]
    judge_round = seated_round(site, *names)
    waiting = iter(names)
    start = threading.Barrier(4)

    def submit_all() -> list[str]:
        start.wait(PATIENCE_S)
        accepted = []
        for name in waiting:
            accepted += site.submit(judge_round, name, "rrrr").accepted
        return accepted

    def end() -> None:
        start.wait(PATIENCE_S)
        advance_rounds(now=judge_round.closes_at)

    senders = [crew.start(submit_all) for _ in range(3)]
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


def test_an_answer_being_stored_when_answering_ends_counts(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        receipt = site.submit(judge_round, "amber", "rrrr")
        ending = crew.start(lambda: advance_rounds(now=judge_round.closes_at))
        wait_for_blocked_lock()
    ending.result(PATIENCE_S)
    assert len(receipt.accepted) == 4
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.SCORING
    site.grade()
    site.advance(OPEN_S)
    assert Score.objects.get().score == 1


def test_an_answer_that_waited_for_the_end_of_answering_is_late(site: Site, crew: Crew) -> None:
    judge_round = seated_round(site, "amber")
    with transaction.atomic():
        Round.objects.select_for_update().get(pk=judge_round.pk)
        sending = crew.start(lambda: site.submit(judge_round, "amber", "rrrr"))
        wait_for_blocked_lock()
        advance_rounds(now=judge_round.closes_at)
    assert sending.result(PATIENCE_S).accepted == []
    assert not Answer.objects.exists()
