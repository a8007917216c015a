"""Handlers for judge rounds: the current round, its questions, and the answers to them."""

from datetime import datetime

from channels.db import database_sync_to_async

from judge.selectors.rounds import describe_round
from judge.services.answers import Submission, offered_questions, take_seat
from swarm_protocol.messages import (
    AnswersReceived,
    OfferedQuestion,
    QuestionsOffered,
    RequestQuestions,
    RequestRound,
    RoundState,
    SubmitAnswers,
)
from swarm_web.core import counters
from swarm_web.gateway.arms import assign_arm
from swarm_web.gateway.handlers.season import read_round
from swarm_web.gateway.session import Session
from swarm_web.nodes.models import Node


async def get_round(session: Session, message: RequestRound) -> RoundState:
    """Return the current round of the running season; `round` is None if there is none."""
    season = await session.shared.season.get()
    return RoundState(
        reply_to=message.id, round=await read_round(season), now=session.clock().isoformat()
    )


async def offer_questions(session: Session, message: RequestQuestions) -> QuestionsOffered:
    """Record that the node requested a round's questions, and return the questions.

    Raises RefusedError if the round is unknown or not open, or if the node must wait for the next
    round (`take_seat`).
    """
    season = await session.shared.season.get()
    if season is not None:
        # If the season began after the hello, the arm is drawn before the first question.
        await assign_arm(session, season)
    offered: QuestionsOffered = await database_sync_to_async(_offer)(
        session.node, message, now=session.clock()
    )
    return offered


def _offer(node: Node, message: RequestQuestions, *, now: datetime) -> QuestionsOffered:
    judge_round = take_seat(node, number=message.round, now=now)
    questions = offered_questions(judge_round.pk)
    return QuestionsOffered(
        reply_to=message.id,
        round=describe_round(judge_round, questions=len(questions)),
        max_new_tokens=judge_round.season.max_new_tokens,
        temperature=judge_round.season.temperature,
        now=now.isoformat(),
        questions=[
            OfferedQuestion(id=str(question.pk), dataset=question.dataset, prompt=question.prompt)
            for question in questions
        ],
        system_prompt=judge_round.season.system_prompt,
    )


async def receive_answers(session: Session, message: SubmitAnswers) -> AnswersReceived:
    """Store answers, request their grading, and return the acknowledgement.

    Raises RefusedError if the round is unknown or has no questions yet.
    """
    receipt = await session.shared.answers.do(
        Submission(session.node.pk, message.round, message.answers, session.clock(), session.signer)
    )
    if receipt.accepted:
        session.shared.grading.wake()
    for item in receipt.rejected:
        counters.count(counters.REFUSED, item.code)
    return AnswersReceived(
        reply_to=message.id,
        round=message.round,
        accepted=receipt.accepted,
        duplicate=receipt.duplicate,
        rejected=receipt.rejected,
        receipt=receipt.signed,
    )
