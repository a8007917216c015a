"""Test that outages of the site do not affect the watch over silent nodes."""

import asyncio
from datetime import timedelta

from swarm_web.core.heartbeat import stamp_web
from swarm_web.core.store import sync_redis
from swarm_web.notifications.services.noticing import update_watch
from tests.notifications.conftest import NOW

SECONDS = timedelta(seconds=15)


def test_watch_continues_while_a_web_process_is_serving() -> None:
    asyncio.run(stamp_web())
    update_watch(now=NOW)
    assert update_watch(now=NOW + SECONDS).since == NOW


def test_watch_does_not_start_while_no_web_process_is_serving() -> None:
    update_watch(now=NOW)
    assert update_watch(now=NOW + SECONDS).since == NOW + SECONDS


def test_watch_lost_by_redis_restarts() -> None:
    asyncio.run(stamp_web())
    update_watch(now=NOW)
    sync_redis().delete("notifications:watch")
    assert update_watch(now=NOW + SECONDS).since == NOW + SECONDS


def test_watch_in_another_format_restarts() -> None:
    asyncio.run(stamp_web())
    sync_redis().set("notifications:watch", '{"version": 2}')
    assert update_watch(now=NOW).since == NOW
