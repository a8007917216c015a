"""Answers are taken once, in time, from those who were asked."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from judge.models import Answer, Round
from judge.services.answers import (
    LOST_AFTER,
    find_unscored,
    score_answers,
    submit_answers,
    take_seat,
)
from judge.services.rounds import end_answering
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import AnswerText
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from tests.judge.conftest import Clock, answers_to, connect_node
from tests.processes import eventually


@pytest.fixture
def node(open_round: Round, clock: Clock) -> Node:
    """A node with a seat in the open round."""
    node = connect_node("amber", clock)
    take_seat(node, number=open_round.number, now=clock.now)
    return node


def test_answers_in_time_are_stored(node: Node, open_round: Round, clock: Clock) -> None:
    receipt = submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=2), now=clock.now
    )
    assert len(receipt.accepted) == len(receipt.stored) == Answer.objects.count() == 4


def test_a_repeated_answer_changes_nothing(node: Node, open_round: Round, clock: Clock) -> None:
    first = answers_to(open_round, right=4)
    submit_answers(node, number=open_round.number, answers=first, now=clock.now)
    changed = answers_to(open_round, right=0)
    receipt = submit_answers(node, number=open_round.number, answers=changed, now=clock.now)
    assert (len(receipt.duplicate), receipt.accepted) == (4, [])
    assert set(Answer.objects.values_list("text", flat=True)) == {a.text for a in first}


def test_the_same_answer_twice_in_one_message_counts_once(
    node: Node, open_round: Round, clock: Clock
) -> None:
    answer = answers_to(open_round, right=4)[0]
    receipt = submit_answers(
        node, number=open_round.number, answers=[answer, answer], now=clock.now
    )
    assert (len(receipt.accepted), len(receipt.duplicate)) == (1, 1)


def test_simultaneous_senders_of_one_node_count_once(
    node: Node, open_round: Round, clock: Clock
) -> None:
    answers = answers_to(open_round, right=4)

    def submit() -> int:
        try:
            receipt = submit_answers(node, number=open_round.number, answers=answers, now=clock.now)
            return len(receipt.accepted)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        accepted = [future.result() for future in [pool.submit(submit) for _ in range(4)]]
    assert sorted(accepted) == [0, 0, 0, 4]
    assert Answer.objects.count() == 4


def test_an_answer_after_the_deadline_is_late(node: Node, open_round: Round, clock: Clock) -> None:
    receipt = submit_answers(
        node,
        number=open_round.number,
        answers=answers_to(open_round, right=4),
        now=open_round.closes_at,
    )
    assert {r.code for r in receipt.rejected} == {ErrorCode.ANSWER_LATE}
    assert not Answer.objects.exists()


def test_an_answer_without_a_seat_is_not_yours(open_round: Round, clock: Clock) -> None:
    stranger = connect_node("stranger", clock)
    receipt = submit_answers(
        stranger, number=open_round.number, answers=answers_to(open_round, right=4), now=clock.now
    )
    assert {r.code for r in receipt.rejected} == {ErrorCode.ANSWER_NOT_YOURS}


def test_an_answer_to_no_question_of_the_round_is_not_yours(
    node: Node, open_round: Round, clock: Clock
) -> None:
    invented = AnswerText(question="not-a-question", text="1", finish_reason="stop")
    receipt = submit_answers(node, number=open_round.number, answers=[invented], now=clock.now)
    assert [r.code for r in receipt.rejected] == [ErrorCode.ANSWER_NOT_YOURS]


def test_one_bad_answer_does_not_cost_the_good_ones(
    node: Node, open_round: Round, clock: Clock
) -> None:
    invented = AnswerText(question="not-a-question", text="1", finish_reason="stop")
    receipt = submit_answers(
        node,
        number=open_round.number,
        answers=[invented, *answers_to(open_round, right=4)],
        now=clock.now,
    )
    assert (len(receipt.accepted), len(receipt.rejected)) == (4, 1)


def test_an_unknown_round_is_refused(node: Node, clock: Clock) -> None:
    with pytest.raises(RefusedError) as refusal:
        take_seat(node, number=9999, now=clock.now)
    assert refusal.value.code == ErrorCode.ROUND_UNKNOWN


def test_no_seat_is_given_after_the_deadline(open_round: Round, clock: Clock) -> None:
    late = connect_node("late", clock)
    with pytest.raises(RefusedError) as refusal:
        take_seat(late, number=open_round.number, now=open_round.closes_at)
    assert refusal.value.code == ErrorCode.ROUND_NOT_OPEN


def test_a_round_ends_early_when_every_seat_is_complete(
    node: Node, open_round: Round, clock: Clock
) -> None:
    submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=4), now=clock.now
    )
    assert [r.pk for r in end_answering(now=clock.advance(1))] == [open_round.pk]


def test_a_round_waits_for_a_seat_that_is_not_complete(
    node: Node, open_round: Round, clock: Clock
) -> None:
    take_seat(connect_node("slow", clock), number=open_round.number, now=clock.now)
    submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=4), now=clock.now
    )
    assert end_answering(now=clock.advance(1)) == []


def test_a_round_does_not_end_while_a_node_takes_its_seat(
    node: Node, open_round: Round, clock: Clock
) -> None:
    submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=4), now=clock.now
    )
    late = connect_node("late", clock)

    def end() -> list[Round]:
        try:
            return end_answering(now=clock.now)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            take_seat(late, number=open_round.number, now=clock.now)
            ending = pool.submit(end)
            eventually(is_anyone_waiting, within_s=10, what="the round's end waits for the seat")
        assert ending.result() == []


def is_anyone_waiting() -> bool:
    """Tell whether a query waits for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_answers_are_graded_by_the_verifier(
    node: Node, open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    receipt = submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=3), now=clock.now
    )
    assert score_answers(receipt.stored, verifier=verifier) == 4
    assert Answer.objects.filter(solved=True).count() == 3


def test_grading_again_changes_nothing(
    node: Node, open_round: Round, clock: Clock, verifier: Verifier
) -> None:
    receipt = submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=3), now=clock.now
    )
    score_answers(receipt.stored, verifier=verifier)
    assert score_answers(receipt.stored, verifier=verifier) == 0


def test_the_sweep_finds_answers_whose_grading_was_lost(
    node: Node, open_round: Round, clock: Clock
) -> None:
    receipt = submit_answers(
        node, number=open_round.number, answers=answers_to(open_round, right=4), now=clock.now
    )
    assert find_unscored(now=clock.now, limit=10) == []
    found = find_unscored(now=clock.now + LOST_AFTER + timedelta(seconds=1), limit=10)
    assert found == receipt.stored
