"""What each message does, without a socket."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from kombu.exceptions import OperationalError

from judge.models import Answer, Round, Season, Seat
from judge.tasks import grade_answers
from swarm_protocol.codec import encode
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    AnswersReceived,
    AnswerText,
    PublishRollouts,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    SubmitAnswers,
)
from swarm_web.gateway.handlers.greeting import greet
from swarm_web.gateway.handlers.judging import offer_questions, receive_answers, tell_round
from swarm_web.gateway.handlers.standing import tell_standing
from swarm_web.gateway.handlers.training import publish, report_training, sample
from swarm_web.gateway.session import Session, shared_reads
from swarm_web.leaderboard import read_leaderboard
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout, make_round, make_score
from tests.gateway.conftest import Member

NOW = timezone.now()


def session_of(member: Member, *, now: datetime = NOW) -> Session:
    """Return a session that has said hello, on a clock that stands still."""
    return Session(member.node, shared_reads(), clock=lambda: now, random=Random(0), greeted=True)


# ---- rollouts and training


async def test_what_one_node_publishes_another_is_given(
    season: Season, amber: Member, bold: Member
) -> None:
    rollout = make_rollout(season)
    published = await publish(session_of(amber), PublishRollouts(id="p", rollouts=[rollout]))
    assert (published.reply_to, published.accepted, published.rejected) == ("p", 1, [])
    given = await sample(
        session_of(bold, now=NOW + timedelta(seconds=2)), RequestRollouts(id="r", count=8)
    )
    assert [(item.node, item.age_s, item.rollout) for item in given.rollouts] == [
        ("amber", 2.0, rollout)
    ]


async def test_a_node_is_never_given_its_own(season: Season, amber: Member) -> None:
    session = session_of(amber)
    await publish(session, PublishRollouts(id="p", rollouts=[make_rollout(season)]))
    assert (await sample(session, RequestRollouts(id="r", count=8))).rollouts == []


async def test_a_repeated_rollout_is_accepted_and_counted_once(
    season: Season, amber: Member
) -> None:
    message = PublishRollouts(id="p", rollouts=[make_rollout(season)])
    replies = [await publish(session_of(amber), message) for _ in range(2)]
    assert [reply.accepted for reply in replies] == [1, 1]
    assert (await Contribution.objects.aget()).published == 1


async def test_a_training_report_is_stored(season: Season, amber: Member) -> None:
    report = ReportTraining(
        id="t",
        step=7,
        training_reward=0.5,
        informative_share=0.25,
        local_used=28,
        external_used=0,
    )
    assert (await report_training(session_of(amber), report)).reply_to == "t"
    assert (await Contribution.objects.aget()).step == 7


# ---- rounds


async def test_the_current_round_is_told(season: Season, amber: Member) -> None:
    judge_round = await sync_to_async(make_round)(season)
    state = await tell_round(session_of(amber), RequestRound(id="r"))
    assert state.round is not None
    assert (state.reply_to, state.round.number) == ("r", judge_round.number)
    assert state.now == NOW.isoformat()


async def test_taking_questions_takes_the_seat(season: Season, amber: Member) -> None:
    judge_round = await sync_to_async(make_round)(season, questions=3)
    request = RequestQuestions(id="q", round=judge_round.number)
    offered = await offer_questions(session_of(amber), request)
    prompts = [question.prompt for question in offered.questions]
    assert prompts == ["What is 1 + 1?", "What is 1 + 2?", "What is 1 + 3?"]
    assert (await Seat.objects.aget()).offered_at == NOW


async def test_the_frame_of_questions_holds_nothing_that_gives_answers_away(
    season: Season, amber: Member
) -> None:
    judge_round = await sync_to_async(make_round)(season)
    request = RequestQuestions(id="q", round=judge_round.number)
    frame = encode(await offer_questions(session_of(amber), request))
    for word in ("seed", "index", "spec", "answer", "config", "secret", "generator"):
        assert word not in frame
    async for question in judge_round.questions.all():
        assert str(question.spec["index"]) not in frame
    assert str(season.seed) not in frame


def answers_to(questions: list[str]) -> list[AnswerText]:
    return [AnswerText(question=q, text="2", finish_reason="stop") for q in questions]


@pytest.fixture
def submission(season: Season, amber: Member) -> SubmitAnswers:
    """Answers to all questions of an open round in which amber has a seat."""
    judge_round = make_round(season)
    Seat.objects.create(round=judge_round, node=amber.node, offered_at=NOW)
    questions = [str(question.pk) for question in judge_round.questions.all()]
    return SubmitAnswers(id="s", round=judge_round.number, answers=answers_to(questions))


async def test_answers_are_stored_acknowledged_and_sent_to_grading_once(
    amber: Member, submission: SubmitAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    enqueued: list[list[int]] = []
    monkeypatch.setattr(grade_answers, "delay_on_commit", enqueued.append)
    received = await receive_answers(session_of(amber), submission)
    await receive_answers(session_of(amber), submission)
    assert received.accepted == [answer.question for answer in submission.answers]
    assert enqueued == [[answer.pk async for answer in Answer.objects.order_by("pk")]]


async def test_answers_are_acknowledged_although_the_queue_is_away(
    amber: Member,
    submission: SubmitAnswers,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_ids: list[int]) -> None:
        raise OperationalError("no broker")

    monkeypatch.setattr(grade_answers, "delay_on_commit", fail)
    received = await receive_answers(session_of(amber), submission)
    assert isinstance(received, AnswersReceived)
    assert len(received.accepted) == await Answer.objects.acount() == 2
    assert ("WARNING", "could not enqueue the grading of answers") in [
        (record.levelname, record.message) for record in caplog.records
    ]


# ---- standing


async def test_a_standing_is_the_nodes_row_of_the_leaderboard(
    season: Season, amber: Member, bold: Member
) -> None:
    closed = await sync_to_async(make_round)(season, phase=Round.Phase.CLOSED)
    await sync_to_async(make_score)(closed, amber.node, correct=12)
    await sync_to_async(make_score)(closed, bold.node, correct=2)
    standing = await tell_standing(session_of(bold), RequestStanding(id="s"))
    board = await sync_to_async(read_leaderboard)(season, window="season", now=NOW)
    [row] = [row for row in board.rows if row.node == "bold"]
    assert (standing.rank, standing.score, standing.n) == (row.rank, row.score, row.n)
    assert (standing.interval, standing.rounds) == (row.interval, 1)


async def test_a_node_that_was_not_judged_yet_has_an_empty_standing(
    season: Season, amber: Member
) -> None:
    standing = await tell_standing(session_of(amber), RequestStanding(id="s"))
    assert (standing.rank, standing.score, standing.interval, standing.n) == (None, None, None, 0)


# ---- without a season


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (sample, RequestRollouts(id="x", count=1)),
        (tell_standing, RequestStanding(id="x")),
    ],
)
async def test_without_a_season_there_is_nothing_to_take_part_in(
    amber: Member, handler: Any, message: Any
) -> None:
    with pytest.raises(RefusedError) as refusal:
        await handler(session_of(amber), message)
    assert refusal.value.code == ErrorCode.SEASON_NONE


async def test_a_hello_makes_the_session_greeted_and_the_node_known(amber: Member) -> None:
    session = session_of(amber)
    session.greeted = False
    await greet(session, make_hello())
    assert session.greeted
    node = await Node.objects.aget(name="amber")
    assert (node.last_seen, node.client_version) == (NOW, make_hello().client)
