"""Seasons as visitors find them: running without a result, and with several judged nodes."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from judge.models import Round, Season
from swarm_web import bus
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from swarm_web.store import async_redis
from tests.factories import make_answer, make_node, make_round, make_score, make_season, make_seat


def judge_nodes(season: Season, *, count: int, rounds: int = 2, questions: int = 2) -> list[Node]:
    """Make connected nodes with answers and scores in closed rounds; later ones solve less."""
    nodes = [make_node(last_seen=timezone.now())[0] for _ in range(count)]
    for _ in range(rounds):
        judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=questions)
        for place, node in enumerate(nodes):
            make_seat(judge_round, node)
            make_score(judge_round, node, correct=16 - place % 16)
            for question in judge_round.questions.all():
                make_answer(question, node, solved=place % 2 == 0)
    for node in nodes:
        Contribution.objects.create(node=node, season=season, external_used=7, step=3)
    return nodes


@pytest.fixture
def season(db: None) -> Season:
    return make_season("Autumn")


@pytest.fixture
def judged(season: Season) -> list[Node]:
    return judge_nodes(season, count=3)


@pytest_asyncio.fixture
async def tidy_stores(transactional_db: None) -> AsyncIterator[None]:
    """Leave no connection of this loop or of asgiref's thread open."""
    yield
    await bus.switchboard().close()
    await async_redis().aclose()
    await sync_to_async(connections.close_all)()
