"""An owner with nodes, a receiver, and channels that send to it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.notifications.courier import process_courier
from swarm_web.notifications.models import Channel
from swarm_web.notifications.services.channels import add_channel
from tests.factories import make_node
from tests.notifications.receiver import Receiver, receiving

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=300)


@pytest.fixture(autouse=True)
def fresh(settings: Settings) -> None:
    """Clear Redis and this process's courier, and allow loopback as a target."""
    sync_redis().flushdb()
    process_courier.cache_clear()
    settings.NOTIFICATION_PRIVATE_TARGETS = True


@pytest.fixture(scope="session")
def _receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def receiver(_receiver: Receiver) -> Receiver:
    """A receiver without recorded requests that accepts everything."""
    while not _receiver.got.empty():
        _receiver.got.get()
    _receiver.status, _receiver.location = 204, ""
    return _receiver


@pytest.fixture
def owner(db: None) -> User:
    """A user with an e-mail address."""
    return User.objects.create_user("ada", email="ada@example.org")


def make_owned(owner: User, **fields: Any) -> Node:
    """Create a node that belongs to an owner."""
    node, _ = make_node()
    Node.objects.filter(pk=node.pk).update(owner=owner, **fields)
    node.refresh_from_db()
    return node


def make_channel(
    owner: User,
    *events: str,
    kind: str = Channel.Kind.WEBHOOK,
    target: str = "http://127.0.0.1:9/hook",
    since: datetime = LONG_AGO,
) -> Channel:
    """Create a channel that is subscribed to these events, or to all of them."""
    return add_channel(
        owner,
        kind=kind,
        target="" if kind == Channel.Kind.EMAIL else target,
        events=events or Channel.Event.values,
        now=since,
    )
