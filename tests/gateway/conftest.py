"""Fixtures: a running gateway, a season, two nodes, and cleanup after each test."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from judge.models import Round, Season, Seat
from swarm_web.core import bus
from swarm_web.core.store import async_redis
from swarm_web.gateway.process import close_process
from swarm_web.nodes.models import Node
from tests.factories import make_node, make_season
from tests.sockets import running_gateway


@dataclass(frozen=True)
class Member:
    """A node with its token."""

    node: Node
    token: str


def invite(judge_round: Round, *members: Member) -> None:
    """Create seats for nodes, as the judge does for connected nodes when a round opens."""
    Seat.objects.bulk_create(Seat(round=judge_round, node=member.node) for member in members)


@pytest_asyncio.fixture(autouse=True)
async def tidy_stores(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[None]:
    """Reset the counters before a test; close this loop's and asgiref's connections after it.

    Channels would open and close a database connection for each call; with CONN_MAX_AGE the
    thread reuses it during the test. In production a pool does this.
    """
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 60)
    await async_redis().delete("counters")
    yield
    await close_process()
    await bus.switchboard().close()
    await async_redis().aclose()
    await sync_to_async(connections.close_all)()


@pytest_asyncio.fixture
async def gateway(tidy_stores: None) -> AsyncIterator[str]:
    """Return the `ws://` address of a running site."""
    async with running_gateway() as url:
        yield url


@pytest.fixture
def season(transactional_db: None) -> Season:
    """A running season in which only invited nodes take part in an open round."""
    return make_season(late_joiners=Season.LateJoiners.WAIT)


@pytest.fixture
def amber(transactional_db: None) -> Member:
    return Member(*make_node("amber"))


@pytest.fixture
def bold(transactional_db: None) -> Member:
    return Member(*make_node("bold"))
