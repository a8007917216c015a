"""A season on the starter mix, a clock that tests move, and a real verifier."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from judge.models import Question, Round, Season
from judge.services.rounds import advance_rounds
from judge.services.scheduling import LEAD, schedule_round
from judge.services.seasons import start_season
from swarm_protocol.messages import AnswerText
from swarm_tasks.verifier import Verifier
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node, touch

SUMS = [{"dataset": "chain_sum", "config": {"min_terms": 2, "max_terms": 2}, "weight": 1.0}]


class Clock:
    """The server's clock, moved by hand."""

    def __init__(self) -> None:
        self.now: datetime = timezone.now()

    def advance(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


@pytest.fixture(scope="session")
def verifier() -> Iterator[Verifier]:
    with Verifier() as verifier:
        yield verifier


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def season(transactional_db: None, clock: Clock) -> Season:
    season = Season.objects.create(
        name="Sums",
        tasks=SUMS,
        questions_per_round=4,
        open_seconds=60,
        scoring_seconds=30,
        cadence_seconds=120,
    )
    start_season(season, now=clock.now)
    return season


@pytest.fixture
def open_round(season: Season, clock: Clock, verifier: Verifier) -> Round:
    """An open round without seats."""
    made = schedule_round(season, opens_at=clock.now + LEAD, now=clock.now, verifier=verifier)
    advance_rounds(now=clock.advance(LEAD.total_seconds()))
    made.refresh_from_db()
    return made


def connect_node(name: str, clock: Clock) -> Node:
    """Make a node whose socket is open."""
    node, _ = create_node(name=name)
    touch(node.pk, now=clock.now)
    node.refresh_from_db()
    return node


def answer(question: Question, *, right: bool = True) -> AnswerText:
    """Answer a sum, rightly or not."""
    terms = re.findall(r"[-+]?\s*\d+", question.prompt.split(":", 1)[-1])
    total = sum(int(term.replace(" ", "")) for term in terms)
    return AnswerText(
        question=str(question.pk),
        text=f"<answer>{total if right else total + 1}</answer>",
        finish_reason="stop",
    )


def answers_to(judge_round: Round, *, right: int) -> list[AnswerText]:
    """Answer every question of a round, the first `right` of them rightly."""
    return [
        answer(question, right=i < right) for i, question in enumerate(judge_round.questions.all())
    ]
