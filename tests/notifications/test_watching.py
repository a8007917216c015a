"""The watch over silent nodes is not fooled by outages of the site."""

import asyncio
from datetime import timedelta

from swarm_web.core.heartbeat import stamp_web
from swarm_web.core.store import sync_redis
from swarm_web.notifications.services.noticing import update_watch
from tests.notifications.conftest import NOW

SECONDS = timedelta(seconds=15)


def test_a_watch_lasts_while_a_web_process_serves() -> None:
    asyncio.run(stamp_web())
    update_watch(now=NOW)
    assert update_watch(now=NOW + SECONDS).since == NOW


def test_a_watch_does_not_begin_while_no_web_process_serves() -> None:
    update_watch(now=NOW)
    assert update_watch(now=NOW + SECONDS).since == NOW + SECONDS


def test_a_watch_that_redis_lost_begins_anew() -> None:
    asyncio.run(stamp_web())
    update_watch(now=NOW)
    sync_redis().delete("notifications:watch")
    assert update_watch(now=NOW + SECONDS).since == NOW + SECONDS
