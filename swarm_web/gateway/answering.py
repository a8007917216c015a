"""Answers a frame from a node: decodes it, calls its handler, and returns the reply or refusal.

All errors in answering a frame become refusals here, so they have the same form and are counted
once.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from swarm_protocol.codec import UndecodableError, decode_from_node
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    Hello,
    NodeMessage,
    PublishRollouts,
    Refused,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    ServerMessage,
    SubmitAnswers,
)
from swarm_web.core import counters
from swarm_web.core.refusals import record_refusal
from swarm_web.core.write_behind import STORE_ERRORS
from swarm_web.gateway.handlers.hello import handle_hello
from swarm_web.gateway.handlers.judging import get_round, offer_questions, receive_answers
from swarm_web.gateway.handlers.standing import get_standing
from swarm_web.gateway.handlers.training import draw_rollouts, publish_rollouts, report_training
from swarm_web.gateway.quota import Wait
from swarm_web.gateway.session import Session
from swarm_web.gateway.staggering import jitter

logger = logging.getLogger(__name__)

Handler = Callable[[Session, Any], Awaitable[ServerMessage]]

HANDLERS: dict[type[msgspec.Struct], Handler] = {
    Hello: handle_hello,
    PublishRollouts: publish_rollouts,
    RequestRollouts: draw_rollouts,
    ReportTraining: report_training,
    RequestRound: get_round,
    RequestQuestions: offer_questions,
    SubmitAnswers: receive_answers,
    RequestStanding: get_standing,
}

# Used if Postgres or Redis is unavailable: both are usually back within seconds. Jitter makes the
# wait up to twice as long, so that nodes do not all retry at once.
_BUSY_RETRY_S = 4.0


class _AccountLimitError(RefusedError):
    """Refusal because all nodes of an account together send too much; not evidence of conduct."""


async def answer(session: Session, frame: str | bytes, *, wait: Wait) -> ServerMessage:
    """Decode a frame and call its handler; return the reply, or a refusal if there was an error.

    If `wait.seconds` is not 0, the frame exceeds the rate limit and is refused. A refusal is
    recorded for the node, unless its cause is an unavailable store or a bug.
    """
    request_id: str | None = None
    try:
        message = _decode(frame)
        request_id = message.id
        _check_turn(session, message, wait)
        return await HANDLERS[type(message)](session, message)
    except UndecodableError as refusal:
        problem = _too_fast(session, wait) if wait.seconds > 0 else refusal
        return _refuse_node(session, problem, reply_to=refusal.request_id)
    except RefusedError as refusal:
        return _refuse_node(session, refusal, reply_to=request_id)
    except STORE_ERRORS:
        logger.exception("a store is unavailable, node %s", session.node)
        reason = "the coordinator's database or its Redis does not answer"
        busy = RefusedError(
            ErrorCode.SERVER_BUSY, reason, retry_after=jitter(_BUSY_RETRY_S, session.random)
        )
        return refuse(busy, reply_to=request_id)
    except Exception:
        # An edge: a bug in the handling of one message must not end the node's connection.
        logger.exception("a handler failed, node %s", session.node)
        bug = RefusedError(ErrorCode.SERVER_INTERNAL, "the coordinator failed to handle this")
        return refuse(bug, reply_to=request_id)


def _decode(frame: str | bytes) -> NodeMessage:
    """Decode a text frame. Raises UndecodableError if it is invalid, and for any binary frame."""
    if isinstance(frame, bytes):
        raise UndecodableError(ErrorCode.PROTOCOL_NOT_JSON, "a binary frame")
    return decode_from_node(frame)


def _check_turn(session: Session, message: NodeMessage, wait: Wait) -> None:
    """Raise RefusedError if a message exceeds the rate limit or comes before the hello."""
    if wait.seconds > 0:
        raise _too_fast(session, wait)
    if not session.greeted and not isinstance(message, Hello):
        raise RefusedError(ErrorCode.PROTOCOL_HELLO, "the first message was no hello")


def _too_fast(session: Session, wait: Wait) -> RefusedError:
    wait_s = jitter(wait.seconds, session.random)
    if wait.is_shared:
        problem = "too many messages or bytes of all nodes of this account"
        return _AccountLimitError(ErrorCode.RATE_LIMITED, problem, retry_after=wait_s)
    return RefusedError(ErrorCode.RATE_LIMITED, "too many messages or bytes", retry_after=wait_s)


def _refuse_node(session: Session, refusal: RefusedError, *, reply_to: str | None) -> Refused:
    record_node_refusal(session, refusal)
    return refuse(refusal, reply_to=reply_to)


def record_node_refusal(session: Session, refusal: RefusedError) -> None:
    """Record a refusal for the node's page, and count it as evidence of the node's conduct.

    The refusal is counted only if the node is enrolled in a season and `Hub.count_refusal` accepts
    the refusal's code. It is not counted if the node stayed within its own limit, and only the
    common limit of its owner's nodes was exceeded.
    """
    if session.season_id is not None and not isinstance(refusal, _AccountLimitError):
        session.shared.hub.count_refusal(session.season_id, session.node.pk, refusal.code)
    record_refusal(session.node.pk, code=refusal.code, message=refusal.message, now=session.clock())


def refuse(refusal: RefusedError, *, reply_to: str | None) -> Refused:
    """Count a refusal for the metrics, and return it as a message to the node."""
    counters.count(counters.REFUSED, refusal.code)
    return Refused(
        reply_to=reply_to,
        code=refusal.code,
        message=refusal.message,
        fix=refusal.fix,
        fatal=refusal.fatal,
        retry_after=refusal.retry_after,
    )
