"""Fixtures of the relay's tests: a season, two nodes, and cleanup of the stores."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from asgiref.sync import sync_to_async
from django.db import connections

from judge.models import Season
from swarm_web.core.bus import switchboard
from swarm_web.core.counters import pending_counts
from swarm_web.core.store import async_redis, sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.hub import hub
from tests.factories import make_node, make_season


@pytest.fixture
def season(db: None) -> Season:
    return make_season()


@pytest.fixture
def amber(db: None) -> Node:
    return make_node("amber")[0]


@pytest.fixture
def bold(db: None) -> Node:
    return make_node("bold")[0]


@pytest_asyncio.fixture
async def tidy_stores(transactional_db: None, clean_redis: None) -> AsyncIterator[None]:
    """Close the connections that a test's event loop opened."""
    yield
    await hub().close()
    await switchboard().close()
    await pending_counts().close()
    await async_redis().aclose()
    await sync_to_async(connections.close_all)()


@pytest.fixture
def clean_redis() -> Iterator[None]:
    """Delete the relay's keys in Redis before and after a test."""
    delete_relay_keys()
    yield
    delete_relay_keys()


def delete_relay_keys() -> None:
    """Delete all keys of the relay in Redis."""
    for pattern in ("relay:*", "{relay}:sample*"):
        for key in sync_redis().scan_iter(pattern):
            sync_redis().delete(key)
