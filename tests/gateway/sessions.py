"""Sessions for tests that call handlers without a socket."""

from datetime import datetime
from random import Random

from django.utils import timezone

from swarm_protocol.messages import AnswerText
from swarm_web.gateway.session import Session, Shared, shared_reads
from tests.gateway.conftest import Member

NOW = timezone.now()


def session_of(member: Member, *, now: datetime = NOW, shared: Shared | None = None) -> Session:
    """Return a session that has said hello, on a clock that stands still."""
    shared = shared or shared_reads()
    return Session(member.node, shared, clock=lambda: now, random=Random(0), greeted=True)


def answers_to(questions: list[str], *, text: str = "2") -> list[AnswerText]:
    """Answer each question with the same text."""
    return [AnswerText(question=q, text=text, finish_reason="stop") for q in questions]
