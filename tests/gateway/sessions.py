"""Sessions for tests that call handlers without a socket."""

from datetime import datetime
from random import Random

from asgiref.sync import sync_to_async
from django.utils import timezone

from swarm_protocol.codec import decode_from_server, encode
from swarm_protocol.messages import AnswerText, RequestRollouts, RolloutsSampled
from swarm_web.core.counters import pending_counts, read_all
from swarm_web.core.refusals import pending_refusals
from swarm_web.gateway.handlers.training import draw_rollouts
from swarm_web.gateway.session import Session, SharedState, shared_state
from swarm_web.relay.hub import hub
from tests.gateway.conftest import Member

NOW = timezone.now()


def session_of(
    member: Member, *, now: datetime = NOW, shared: SharedState | None = None
) -> Session:
    """Return a greeted session with a fixed clock."""
    shared = shared or shared_state()
    return Session(member.node, shared, clock=lambda: now, random=Random(0), greeted=True)


async def write_collected() -> None:
    """Write collected rollouts, counts, contributions and refusals now."""
    await hub().flush()
    await pending_refusals().flush()
    await pending_counts().flush()


async def read_counts() -> dict[str, dict[str, int]]:
    """Flush pending counts and return all counters."""
    await write_collected()
    return await sync_to_async(read_all)()


async def draw(session: Session, request: RequestRollouts) -> RolloutsSampled:
    """Request rollouts and decode the reply as a node does."""
    reply = decode_from_server(encode(await draw_rollouts(session, request)))
    assert isinstance(reply, RolloutsSampled)
    return reply


def answers_to(questions: list[str], *, text: str = "2") -> list[AnswerText]:
    """Answer each question with the same text."""
    return [AnswerText(question=q, text=text, finish_reason="stop") for q in questions]
