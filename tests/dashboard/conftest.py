"""Seasons and judged nodes for tests of pages."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone
from pytest_django import Settings

from judge.models import Answer, Round, Season, Seat
from swarm_web.core import bus
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution
from tests.factories import (
    make_node,
    make_round,
    make_scores,
    make_season,
    publish,
    write_answer,
)


def judge_nodes(
    season: Season, *, count: int, rounds: int = 2, also: Sequence[Node] = ()
) -> list[Node]:
    """Create connected nodes, judge them and publish the results; later nodes solve fewer of 16.

    Nodes in `also` are judged with them and solve all.
    """
    nodes = [make_node(last_seen=timezone.now())[0] for _ in range(count)]
    for _ in range(rounds):
        judge_round = make_round(season, phase=Round.Phase.CLOSED, questions=2)
        questions = list(judge_round.questions.all())
        places = [*((0, node) for node in also), *enumerate(nodes)]
        Seat.objects.bulk_create(
            Seat(round=judge_round, node=node, offered_at=judge_round.opens_at)
            for _, node in places
        )
        Answer.objects.bulk_create(
            write_answer(question, node, solved=place % 2 == 0)
            for place, node in places
            for question in questions
        )
        make_scores(judge_round, {node: 16 - place % 16 for place, node in places})
    Contribution.objects.bulk_create(
        Contribution(node=node, season=season, external_used=7, step=3) for node in nodes
    )
    publish(season)
    return nodes


@pytest.fixture
def lab(settings: Settings, tmp_path: Path) -> Path:
    """An empty directory of lab reports that replaces the shipped ones."""
    settings.LAB_REPORTS = [tmp_path]
    return tmp_path


@pytest.fixture
def season(db: None) -> Season:
    return make_season("Autumn")


@pytest.fixture
def judged(season: Season) -> list[Node]:
    return judge_nodes(season, count=3)


@pytest.fixture(scope="module")
def judged_once(module_rows: None) -> list[Node]:
    """The nodes of `judged`, created once for modules in which all tests use them."""
    return judge_nodes(make_season("Autumn"), count=3)


@pytest_asyncio.fixture
async def tidy_stores(transactional_db: None) -> AsyncIterator[None]:
    """Close the connections of this loop and of asgiref's thread after the test."""
    yield
    await bus.switchboard().close()
    await async_redis().aclose()
    await sync_to_async(connections.close_all)()
