"""Judge rounds: which one is current, its questions, and the answers to them."""

import logging
from datetime import datetime

from channels.db import database_sync_to_async
from kombu.exceptions import OperationalError

from judge.selectors import describe_round, questions_of
from judge.services.answers import Receipt, submit_answers, take_seat
from judge.tasks import grade_answers
from swarm_protocol.messages import (
    AnswersReceived,
    Question,
    QuestionsOffered,
    RequestQuestions,
    RequestRound,
    RoundState,
    SubmitAnswers,
)
from swarm_web import counters
from swarm_web.gateway.handlers.season import read_round
from swarm_web.gateway.session import Session
from swarm_web.nodes.models import Node

logger = logging.getLogger(__name__)


async def tell_round(session: Session, message: RequestRound) -> RoundState:
    """Tell which round is current."""
    season = await session.shared.season.get()
    return RoundState(
        reply_to=message.id, round=await read_round(season), now=session.clock().isoformat()
    )


async def offer_questions(session: Session, message: RequestQuestions) -> QuestionsOffered:
    """Give the node its seat and the round's prompts."""
    offered: QuestionsOffered = await database_sync_to_async(_offer)(
        session.node, message, now=session.clock()
    )
    return offered


def _offer(node: Node, message: RequestQuestions, *, now: datetime) -> QuestionsOffered:
    judge_round = take_seat(node, number=message.round, now=now)
    return QuestionsOffered(
        reply_to=message.id,
        round=describe_round(judge_round),
        max_new_tokens=judge_round.season.max_new_tokens,
        temperature=judge_round.season.temperature,
        now=now.isoformat(),
        questions=[
            Question(id=str(question.pk), dataset=question.dataset, prompt=question.prompt)
            for question in questions_of(judge_round)
        ],
    )


async def receive_answers(session: Session, message: SubmitAnswers) -> AnswersReceived:
    """Store answers, then have them graded."""
    receipt: Receipt = await database_sync_to_async(_submit)(
        session.node, message, now=session.clock()
    )
    for item in receipt.rejected:
        await counters.count(counters.REFUSED, item.code)
    return AnswersReceived(
        reply_to=message.id,
        round=message.round,
        accepted=receipt.accepted,
        duplicate=receipt.duplicate,
        rejected=receipt.rejected,
    )


def _submit(node: Node, message: SubmitAnswers, *, now: datetime) -> Receipt:
    receipt = submit_answers(node, number=message.round, answers=message.answers, now=now)
    if receipt.stored:
        try:
            grade_answers.delay_on_commit(receipt.stored)
        except OperationalError:
            # The answers are stored, so they are acknowledged; the sweep has them graded.
            logger.warning("could not enqueue the grading of answers", exc_info=True)
    return receipt
