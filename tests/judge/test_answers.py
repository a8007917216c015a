"""Seats, and answers: accepted once, in time, and only from nodes with a seat."""

import copy
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Answer, Round, Season, Seat
from judge.services.answers import (
    Receipt,
    Submission,
    offered_questions,
    store_submissions,
    take_seat,
)
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText
from tests.judge.toys import OPEN_S, Site, answers_from, questions_of

INVENTED = AnswerText(question="not-a-question", text="1", finish_reason="stop")


@pytest.fixture
def judge_round(site: Site) -> Round:
    """An open round in which amber has a seat."""
    site.join("amber")
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    return judge_round


def refusal_of(site: Site, name: str, number: int) -> str:
    with pytest.raises(RefusedError) as refusal:
        take_seat(site.nodes[name], number=number, now=site.clock.now)
    return refusal.value.code


def codes(receipt: Receipt) -> list[str]:
    return [item.code for item in receipt.rejected]


def submission(site: Site, judge_round: Round, name: str, letters: str) -> Submission:
    answers = answers_from(letters, questions_of(judge_round), by=name)
    return Submission(site.nodes[name].pk, judge_round.number, answers, site.clock.now)


# ---- seats


def test_a_seat_is_taken_once_and_stores_the_time(site: Site, judge_round: Round) -> None:
    taken_at = site.clock.now
    site.clock.advance(5)
    site.sit(judge_round, "amber")
    seat = Seat.objects.get()
    assert (seat.offered_at, seat.came_late) == (taken_at, False)


def test_an_unknown_round_has_no_seats(site: Site, judge_round: Round) -> None:
    assert refusal_of(site, "amber", 9999) == ErrorCode.ROUND_UNKNOWN


def test_no_seat_is_given_before_a_round_opens(site: Site) -> None:
    site.join("amber")
    waiting = site.schedule(in_seconds=60)
    assert refusal_of(site, "amber", waiting.number) == ErrorCode.ROUND_NOT_OPEN


def test_no_seat_is_given_after_the_deadline(site: Site, judge_round: Round) -> None:
    site.join("late")
    site.clock.advance(OPEN_S)
    assert refusal_of(site, "late", judge_round.number) == ErrorCode.ROUND_NOT_OPEN
    assert Seat.objects.count() == 1


def test_questions_are_offered_in_order(judge_round: Round) -> None:
    assert list(offered_questions(judge_round.pk)) == questions_of(judge_round)


# ---- late nodes


def test_a_late_node_waits_for_the_next_round(site: Site, judge_round: Round) -> None:
    site.join("late")
    assert refusal_of(site, "late", judge_round.number) == ErrorCode.ROUND_PENDING
    assert refusal_of(site, "late", judge_round.number) == ErrorCode.ROUND_PENDING
    seat = Seat.objects.get(node=site.nodes["late"])
    assert (seat.came_late, seat.offered_at) == (True, None)


def test_a_late_nodes_answers_are_rejected(site: Site, judge_round: Round) -> None:
    site.join("late")
    refusal_of(site, "late", judge_round.number)
    assert codes(site.submit(judge_round, "late", "rrrr")) == 4 * [ErrorCode.ANSWER_NOT_YOURS]


def test_a_round_does_not_wait_for_a_late_node(site: Site, judge_round: Round) -> None:
    site.join("late")
    refusal_of(site, "late", judge_round.number)
    site.submit(judge_round, "amber", "rrrr")
    assert site.advance(1) == [judge_round]


def test_an_uninvited_node_waits_once_its_owner_has_the_questions(
    site: Site, judge_round: Round
) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    site.join("second", "stranger")
    site.own("vera", "amber", "second")
    site.own("sam", "stranger")
    assert refusal_of(site, "second", judge_round.number) == ErrorCode.ROUND_PENDING
    site.sit(judge_round, "stranger")


def test_a_node_given_an_owner_while_connected_is_treated_as_owned(site: Site) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    site.join("amber")
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    (late,) = site.join("late")
    # The session's copy of the node has no owner yet.
    connected = copy.copy(late)
    site.own("vera", "amber", "late")
    with pytest.raises(RefusedError, match="came after"):
        take_seat(connected, number=judge_round.number, now=site.clock.now)


def test_a_late_node_joins_if_the_season_allows_it(site: Site, judge_round: Round) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    site.join("late")
    site.sit(judge_round, "late")
    site.submit(judge_round, "amber", "rrrr")
    assert site.advance(1) == []
    assert len(site.submit(judge_round, "late", "rrrr").accepted) == 4
    assert site.advance(1) == [judge_round]


# ---- accepted answers


def test_answers_in_time_are_stored_with_their_arrival_time(site: Site, judge_round: Round) -> None:
    site.clock.advance(2)
    receipt = site.submit(judge_round, "amber", "rw-r")
    questions = questions_of(judge_round)
    stored = Answer.objects.order_by("question__position")
    assert [answer.question for answer in stored] == [questions[0], questions[1], questions[3]]
    assert receipt.accepted == [str(answer.question_id) for answer in stored]
    assert {(a.received_at, a.latency_ms, a.score) for a in stored} == {
        (site.clock.now, 2000, None)
    }


def test_a_seat_is_complete_with_its_last_answer(site: Site, judge_round: Round) -> None:
    site.submit(judge_round, "amber", "rrr-")
    assert Seat.objects.get().completed_at is None
    site.clock.advance(3)
    site.submit(judge_round, "amber", "---r")
    assert Seat.objects.get().completed_at == site.clock.now


def test_a_repeated_answer_changes_nothing(site: Site, judge_round: Round) -> None:
    site.submit(judge_round, "amber", "rrrr")
    completed = Seat.objects.get().completed_at
    site.clock.advance(3)
    receipt = site.submit(judge_round, "amber", "wwww")
    assert (len(receipt.duplicate), receipt.accepted, receipt.rejected) == (4, [], [])
    assert not Answer.objects.filter(text__contains="wrong").exists()
    assert Seat.objects.get().completed_at == completed


def test_a_repeated_answer_is_a_duplicate_even_after_the_deadline(
    site: Site, judge_round: Round
) -> None:
    site.submit(judge_round, "amber", "rr--")
    site.clock.advance(OPEN_S)
    receipt = site.submit(judge_round, "amber", "rrr-")
    assert (len(receipt.duplicate), codes(receipt)) == (2, [ErrorCode.ANSWER_LATE])


def test_the_first_of_two_answers_to_a_question_in_one_message_is_stored(
    site: Site, judge_round: Round
) -> None:
    (first, *_), (second, *_) = (answers_from(c, questions_of(judge_round)) for c in "rw")
    own = Submission(site.nodes["amber"].pk, judge_round.number, [first, second], site.clock.now)
    (receipt,) = store_submissions([own])
    assert isinstance(receipt, Receipt)
    assert (receipt.accepted, receipt.duplicate) == ([first.question], [first.question])
    assert Answer.objects.get().text == first.text


# ---- rejected answers


def test_an_answer_after_the_deadline_is_late(site: Site, judge_round: Round) -> None:
    site.clock.advance(OPEN_S)
    assert codes(site.submit(judge_round, "amber", "rrrr")) == 4 * [ErrorCode.ANSWER_LATE]
    assert not Answer.objects.exists()


def test_an_answer_just_before_the_deadline_is_in_time(site: Site, judge_round: Round) -> None:
    site.clock.now = judge_round.closes_at - timedelta(microseconds=1)
    assert len(site.submit(judge_round, "amber", "rrrr").accepted) == 4


def test_an_answer_after_an_early_end_is_late(site: Site, judge_round: Round) -> None:
    Round.objects.update(phase=Round.Phase.SCORING)
    assert codes(site.submit(judge_round, "amber", "rrrr")) == 4 * [ErrorCode.ANSWER_LATE]


def test_an_answer_without_a_seat_is_rejected(site: Site, judge_round: Round) -> None:
    site.join("stranger")
    assert codes(site.submit(judge_round, "stranger", "rrrr")) == 4 * [ErrorCode.ANSWER_NOT_YOURS]


def test_an_answer_of_an_invited_node_without_questions_is_rejected(
    site: Site,
) -> None:
    site.join("amber")
    judge_round = site.open("amber")
    assert codes(site.submit(judge_round, "amber", "rrrr")) == 4 * [ErrorCode.ANSWER_NOT_YOURS]


def test_one_bad_answer_does_not_affect_the_good_ones(site: Site, judge_round: Round) -> None:
    answers = [INVENTED, *answers_from("rrrr", questions_of(judge_round))]
    own = Submission(site.nodes["amber"].pk, judge_round.number, answers, site.clock.now)
    (receipt,) = store_submissions([own])
    assert isinstance(receipt, Receipt)
    assert (len(receipt.accepted), codes(receipt)) == (4, [ErrorCode.ANSWER_NOT_YOURS])
    assert receipt.rejected[0].item == "not-a-question"


def test_an_unknown_round_accepts_no_answers(site: Site, judge_round: Round) -> None:
    judge_round.number = 9999
    with pytest.raises(RefusedError) as refusal:
        site.submit(judge_round, "amber", "rrrr")
    assert refusal.value.code == ErrorCode.ROUND_UNKNOWN


# ---- batches


def test_each_submission_of_a_batch_gets_its_own_receipt_in_order(
    site: Site, judge_round: Round
) -> None:
    site.join("birch", "stranger")
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    site.sit(judge_round, "birch")
    unknown = Submission(site.nodes["amber"].pk, 9999, [INVENTED], site.clock.now)
    outcomes = store_submissions(
        [
            submission(site, judge_round, "stranger", "r---"),
            submission(site, judge_round, "amber", "rr--"),
            unknown,
            submission(site, judge_round, "birch", "-rrr"),
        ]
    )
    assert isinstance(outcomes[2], RefusedError)
    receipts = [outcome for outcome in outcomes if isinstance(outcome, Receipt)]
    questions = [str(question.pk) for question in questions_of(judge_round)]
    assert [receipt.accepted for receipt in receipts] == [[], questions[:2], questions[1:]]
    assert Answer.objects.count() == 5


def test_a_node_with_two_submissions_in_a_batch_is_complete(site: Site, judge_round: Round) -> None:
    halves = [submission(site, judge_round, "amber", letters) for letters in ("rr--", "-wrr")]
    first, second = store_submissions(halves)
    assert isinstance(first, Receipt)
    assert isinstance(second, Receipt)
    assert (len(first.accepted), len(second.accepted), len(second.duplicate)) == (2, 2, 1)
    assert Answer.objects.filter(text__contains="right").count() == 4
    assert Seat.objects.get().completed_at is not None


def test_a_late_submission_is_late_even_if_its_batch_has_others_in_time(
    site: Site, judge_round: Round
) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    site.join("birch")
    site.sit(judge_round, "birch")
    early = submission(site, judge_round, "amber", "rrrr")
    site.clock.advance(OPEN_S)
    late = submission(site, judge_round, "birch", "rrrr")
    first, second = store_submissions([early, late])
    assert isinstance(first, Receipt)
    assert isinstance(second, Receipt)
    assert len(first.accepted) == 4
    assert codes(second) == 4 * [ErrorCode.ANSWER_LATE]


def test_a_batch_of_many_nodes_needs_as_many_statements_as_one_of_one_node(
    site: Site, judge_round: Round
) -> None:
    Season.objects.update(late_joiners=Season.LateJoiners.JOIN)
    names = [f"node-{i}" for i in range(20)]
    site.join(*names)
    site.sit(judge_round, *names)
    one = [submission(site, judge_round, "amber", "rrrr")]
    many = [submission(site, judge_round, name, "rrrr") for name in names]
    offered_questions(judge_round.pk)
    assert count_statements(one) == count_statements(many)


def count_statements(submissions: list[Submission]) -> int:
    with CaptureQueriesContext(connection) as captured:
        store_submissions(submissions)
    return len(captured)
