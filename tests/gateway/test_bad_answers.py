"""Refused and duplicate answers, over a real socket."""

from datetime import timedelta

import msgspec
import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone

from judge.models import Answer, Round, Season
from swarm_protocol.messages import (
    AnswersReceived,
    AnswerText,
    QuestionsOffered,
    Rejected,
    RequestQuestions,
    SubmitAnswers,
)
from tests.factories import make_node, make_round
from tests.gateway.conftest import Member, invite
from tests.gateway.refusals import assert_refused, two_nodes
from tests.gateway.sessions import read_counts
from tests.sockets import NodeSocket, node_socket


@pytest.fixture
def judge_round(season: Season, amber: Member, bold: Member) -> Round:
    """An open round with seats for both nodes."""
    opened = make_round(season)
    invite(opened, amber, bold)
    return opened


async def take_questions(sender: NodeSocket, judge_round: Round) -> list[str]:
    offered = await sender.ask(RequestQuestions(id="take", round=judge_round.number))
    assert isinstance(offered, QuestionsOffered)
    return [question.id for question in offered.questions]


def submit(judge_round: Round, questions: list[str], text: str = "2") -> SubmitAnswers:
    answers = [AnswerText(question=q, text=text, finish_reason="stop") for q in questions]
    return SubmitAnswers(id="submit", round=judge_round.number, answers=answers)


async def assert_answers_rejected(
    sender: NodeSocket, message: SubmitAnswers, code: str
) -> list[Rejected]:
    received = await sender.ask(message)
    assert isinstance(received, AnswersReceived)
    assert (received.accepted, received.duplicate) == ([], [])
    assert {item.code for item in received.rejected} == {code}
    assert (await read_counts())["refused"] == {code: len(message.answers)}
    assert not await Answer.objects.aexists()
    return received.rejected


async def test_answer_after_the_deadline_is_rejected(
    gateway: str, amber: Member, bold: Member, judge_round: Round
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        questions = await take_questions(sender, judge_round)
        now = timezone.now()
        await Round.objects.filter(pk=judge_round.pk).aupdate(
            opens_at=now - timedelta(seconds=9), closes_at=now
        )
        message = submit(judge_round, questions)
        rejected = await assert_answers_rejected(sender, message, "answer.late")
        assert [item.item for item in rejected] == questions


async def test_answer_to_questions_offered_to_another_node_is_rejected(
    gateway: str, amber: Member, bold: Member, judge_round: Round
) -> None:
    calm = Member(*await sync_to_async(make_node)("calm"))
    await sync_to_async(invite)(judge_round, calm)
    async with two_nodes(gateway, amber, bold) as sender, node_socket(gateway, calm.token) as other:
        questions = await take_questions(other, judge_round)
        message = submit(judge_round, questions)
        await assert_answers_rejected(sender, message, "answer.not_yours")


async def test_answer_to_a_question_of_another_round_is_rejected(
    gateway: str, amber: Member, bold: Member, season: Season, judge_round: Round
) -> None:
    other = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    foreign = [str(question.pk) async for question in other.questions.all()]
    async with two_nodes(gateway, amber, bold) as sender:
        await take_questions(sender, judge_round)
        message = submit(judge_round, foreign)
        await assert_answers_rejected(sender, message, "answer.not_yours")


async def test_repeated_answer_is_a_duplicate_and_the_first_is_stored(
    gateway: str, amber: Member, bold: Member, judge_round: Round
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        questions = await take_questions(sender, judge_round)
        await sender.ask(submit(judge_round, questions, text="first"))
        again = await sender.ask(submit(judge_round, questions, text="second"))
        assert isinstance(again, AnswersReceived)
        assert (again.accepted, again.duplicate, again.rejected) == ([], questions, [])
    texts = [answer.text async for answer in Answer.objects.all()]
    assert texts == ["first", "first"]


async def test_answer_to_an_unknown_round_is_refused(
    gateway: str, amber: Member, bold: Member, judge_round: Round
) -> None:
    frame = submit(judge_round, ["q"])
    async with two_nodes(gateway, amber, bold) as sender:
        frame = msgspec.structs.replace(frame, round=999_999)
        await assert_refused(sender, frame, "round.unknown", reply_to="submit")


async def test_request_for_questions_of_a_closed_round_is_refused(
    gateway: str, amber: Member, bold: Member, season: Season
) -> None:
    closed = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    frame = RequestQuestions(id="take", round=closed.number)
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, frame, "round.not_open", reply_to="take")
