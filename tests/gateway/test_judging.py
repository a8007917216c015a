"""Handlers of round state, questions and answers."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import msgspec
import pytest
from asgiref.sync import sync_to_async

from judge.models import Answer, Round, Season, Seat
from swarm_protocol.codec import encode
from swarm_protocol.messages import (
    AnswersReceived,
    QuestionsOffered,
    RequestQuestions,
    RequestRound,
    SubmitAnswers,
)
from swarm_web.gateway.handlers.judging import get_round, offer_questions, receive_answers
from swarm_web.gateway.session import shared_state
from tests.factories import make_round, make_season, make_seat
from tests.gateway.conftest import Member, invite
from tests.gateway.refusals import assert_refused
from tests.gateway.sessions import NOW, answers_to, session_of
from tests.sockets import node_socket


def request_questions(judge_round: Round) -> RequestQuestions:
    return RequestQuestions(id="take", round=judge_round.number)


@pytest.fixture
def opened(season: Season) -> Round:
    """An open round without seats."""
    return make_round(season, questions=3)


@pytest.fixture
def submission(opened: Round, amber: Member) -> SubmitAnswers:
    """Answers to all questions of an open round in which amber has a seat."""
    make_seat(opened, amber.node)
    questions = [str(question.pk) for question in opened.questions.all()]
    return SubmitAnswers(id="s", round=opened.number, answers=answers_to(questions))


# ---- rounds and questions


async def test_round_request_returns_the_current_round(opened: Round, amber: Member) -> None:
    state = await get_round(session_of(amber), RequestRound(id="r"))
    assert state.round is not None
    assert (state.reply_to, state.round.number) == ("r", opened.number)
    assert state.now == NOW.isoformat()


async def test_requesting_questions_takes_the_seat(opened: Round, amber: Member) -> None:
    await sync_to_async(invite)(opened, amber)
    offered = await offer_questions(session_of(amber), request_questions(opened))
    prompts = [question.prompt for question in offered.questions]
    assert prompts == ["What is 1 + 1?", "What is 1 + 2?", "What is 1 + 3?"]
    assert (await Seat.objects.aget()).offered_at == NOW


async def test_offered_questions_contain_the_generation_settings(
    opened: Round, season: Season, amber: Member
) -> None:
    await sync_to_async(invite)(opened, amber)
    offered = await offer_questions(session_of(amber), request_questions(opened))
    assert offered.round.questions == 3
    assert offered.max_new_tokens == season.max_new_tokens
    assert offered.temperature == season.temperature
    assert offered.system_prompt == season.system_prompt


async def test_repeated_request_offers_the_same_questions_and_keeps_the_first_time(
    opened: Round, amber: Member
) -> None:
    await sync_to_async(invite)(opened, amber)
    first = await offer_questions(session_of(amber), request_questions(opened))
    later = session_of(amber, now=NOW + timedelta(seconds=7))
    again = await offer_questions(later, request_questions(opened))
    assert again.questions == first.questions
    assert (await Seat.objects.aget()).offered_at == NOW


async def test_offered_questions_do_not_reveal_task_specs_or_answers(
    opened: Round, season: Season, amber: Member
) -> None:
    await sync_to_async(invite)(opened, amber)
    offered = await offer_questions(session_of(amber), request_questions(opened))
    # The system prompt is public before the round and contains the word "answer".
    frame = encode(msgspec.structs.replace(offered, system_prompt=""))
    for word in ("seed", "index", "spec", "answer", "config", "secret", "generator"):
        assert word not in frame
    async for question in opened.questions.all():
        assert str(question.spec["index"]) not in frame
    assert str(season.seed) not in frame


# ---- late joiners


async def test_late_joiner_is_refused_with_round_pending_and_stays_connected(
    gateway: str, opened: Round, amber: Member
) -> None:
    async with node_socket(gateway, amber.token) as socket:
        await assert_refused(socket, request_questions(opened), "round.pending", reply_to="take")
    assert (await Seat.objects.aget()).came_late


async def test_late_joiner_gets_questions_if_the_season_allows_it(
    gateway: str, amber: Member
) -> None:
    season = await sync_to_async(make_season)(late_joiners=Season.LateJoiners.JOIN)
    opened = await sync_to_async(make_round)(season)
    async with node_socket(gateway, amber.token) as socket:
        offered = await socket.ask(request_questions(opened))
    assert isinstance(offered, QuestionsOffered), offered
    assert len(offered.questions) == 2


async def test_answers_of_a_waiting_late_joiner_are_rejected(
    gateway: str, opened: Round, submission: SubmitAnswers, bold: Member
) -> None:
    async with node_socket(gateway, bold.token) as socket:
        await socket.ask(request_questions(opened))
        received = await socket.ask(submission)
    assert isinstance(received, AnswersReceived)
    assert {item.code for item in received.rejected} == {"answer.not_yours"}
    assert not await Answer.objects.aexists()


# ---- answers


async def test_submitted_answers_are_stored_and_acknowledged(
    amber: Member, submission: SubmitAnswers
) -> None:
    received = await receive_answers(session_of(amber), submission)
    assert (received.reply_to, received.round) == ("s", submission.round)
    assert received.accepted == [answer.question for answer in submission.answers]
    assert await Answer.objects.filter(node=amber.node, received_at=NOW).acount() == 3


async def test_grading_is_requested_only_for_new_answers(
    amber: Member, submission: SubmitAnswers
) -> None:
    grading = Mock()
    session = session_of(amber, shared=replace(shared_state(), grading=grading))
    await receive_answers(session, submission)
    await receive_answers(session, submission)
    assert grading.wake.call_count == 1


async def test_answers_submitted_over_two_sockets_of_a_node_are_stored_once(
    gateway: str, amber: Member, submission: SubmitAnswers
) -> None:
    questions = [answer.question for answer in submission.answers]
    again = SubmitAnswers(
        id="again", round=submission.round, answers=answers_to(questions, text="changed")
    )
    async with node_socket(gateway, amber.token) as old:
        first = await old.ask(submission)
        async with node_socket(gateway, amber.token) as new:
            second = await new.ask(again)
    assert isinstance(first, AnswersReceived)
    assert isinstance(second, AnswersReceived)
    assert (first.accepted, first.duplicate) == (questions, [])
    assert (second.accepted, second.duplicate) == ([], questions)
    assert [answer.text async for answer in Answer.objects.all()] == ["2", "2", "2"]


async def test_answers_submitted_twice_in_one_batch_are_stored_once(
    amber: Member, submission: SubmitAnswers
) -> None:
    one, two = await asyncio.gather(
        receive_answers(session_of(amber), submission),
        receive_answers(session_of(amber), submission),
    )
    questions = [answer.question for answer in submission.answers]
    assert (one.accepted, one.duplicate) == (questions, [])
    assert (two.accepted, two.duplicate) == ([], questions)
    assert await Answer.objects.acount() == 3


async def test_duplicates_in_a_batch_are_determined_per_node(
    opened: Round, amber: Member, bold: Member, submission: SubmitAnswers
) -> None:
    await sync_to_async(make_seat)(opened, bold.node)
    await receive_answers(session_of(amber), submission)
    repeated, new = await asyncio.gather(
        receive_answers(session_of(amber), submission),
        receive_answers(session_of(bold), submission),
    )
    questions = [answer.question for answer in submission.answers]
    assert (repeated.accepted, repeated.duplicate) == ([], questions)
    assert (new.accepted, new.duplicate) == (questions, [])
