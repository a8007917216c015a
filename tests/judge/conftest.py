"""Fixtures: a season of sums for the real verifier, and a `site` with toy questions."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from judge.models import Question, Round, Season
from judge.services.rounds import advance_rounds
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import start_season
from swarm_protocol.messages import AnswerText
from swarm_tasks.verifier import Verifier
from tests.judge.crew import Crew, set_lock_timeout
from tests.judge.toys import Clock, Site, connect_node

__all__ = ["SUMS", "Clock", "answer", "answers_to", "connect_node", "start_sums"]

SUMS = [{"dataset": "chain_sum", "config": {"min_terms": 2, "max_terms": 2}, "weight": 1.0}]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def season(db: None, clock: Clock) -> Season:
    return start_sums(clock)


def start_sums(clock: Clock) -> Season:
    """Start a season of sums, four per round."""
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
    """An open round of sums, without seats."""
    judge_round = schedule_round(
        season, opens_at=clock.now + LEAD_TIME, now=clock.now, verifier=verifier
    )
    advance_rounds(now=clock.advance(LEAD_TIME.total_seconds()))
    judge_round.refresh_from_db()
    return judge_round


@pytest.fixture
def operator(db: None) -> Client:
    return log_in()


def log_in(name: str = "olive") -> Client:
    """Return a superuser's client."""
    client = Client()
    client.force_login(User.objects.create_superuser(name))
    return client


@pytest.fixture
def site(db: None, clock: Clock) -> Site:
    """A running season of toy questions, four per round, without nodes."""
    return Site.start(clock)


@pytest.fixture
def crew(transactional_db: None) -> Iterator[Crew]:
    set_lock_timeout()
    with ThreadPoolExecutor(4) as pool:
        yield Crew(pool)
    with connection.cursor() as cursor:
        cursor.execute("RESET lock_timeout")


def answer(question: Question, *, right: bool = True) -> AnswerText:
    """Return a correct or wrong answer to a sum."""
    terms = re.findall(r"[-+]?\s*\d+", question.prompt.split(":", 1)[-1])
    total = sum(int(term.replace(" ", "")) for term in terms)
    return AnswerText(
        question=str(question.pk),
        text=f"<answer>{total if right else total + 1}</answer>",
        finish_reason="stop",
    )


def answers_to(judge_round: Round, *, right: int) -> list[AnswerText]:
    """Return answers to all questions of a round of sums, the first `right` of them correct."""
    return [
        answer(question, right=i < right) for i, question in enumerate(judge_round.questions.all())
    ]
