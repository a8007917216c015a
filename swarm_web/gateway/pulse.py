"""The pulse: one heartbeat for all web processes; each process writes it while it can serve nodes.

If no process writes it for some seconds, the judge extends open rounds
(`judge.engine.unserved_time`).
"""

import asyncio
import logging

import redis.exceptions
from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from channels.db import database_sync_to_async
from django import db
from django.utils import timezone

from judge.engine import SILENCE
from swarm_web.core import heartbeat
from swarm_web.core.event_loops import end_task
from swarm_web.core.store import async_redis
from swarm_web.core.store_clock import store_clock
from swarm_web.core.store_version import StoreTooOldError, check_store
from swarm_web.gateway.draining import Drain
from swarm_web.gateway.maintenance import follow_maintenance
from swarm_web.gateway.process import close_process
from swarm_web.maintenance.selectors import latest_maintenance

logger = logging.getLogger(__name__)

PULSE_S = 1.0


async def lifespan(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Run the process's heartbeat from startup to shutdown, as an ASGI lifespan application.

    At shutdown, write the data that is still in memory (`close_process`). Stop signals are handled
    too (`Drain`). The process does not start if Redis is too old.
    """
    await receive()
    try:
        await check_store(async_redis())
    except StoreTooOldError as problem:
        await send({"type": "lifespan.startup.failed", "message": str(problem)})
        return
    drain = Drain()
    drain.handle_signals()
    beating = asyncio.create_task(keep_pulse(drain.started))
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await end_task(beating)
    await close_process()
    await send({"type": "lifespan.shutdown.complete"})


async def keep_pulse(stopping: asyncio.Event) -> None:
    """Write a heartbeat each second until `stopping` is set; refuse all nodes during maintenance.

    No heartbeat is written while Postgres or Redis is unreachable. None is written during
    maintenance either, nor in the RETURN_TIME after it, in which nodes reconnect. If no web process
    writes a heartbeat for some seconds, the judge opens no round and extends open rounds.
    """
    while not stopping.is_set():
        try:
            latest = await _query_maintenance(now=timezone.now())
            now = timezone.now()
            follow_maintenance(latest, now=now)
            if latest is None or not latest.counts_as_outage(now=now):
                await heartbeat.stamp_web()
            else:
                # With no heartbeat at all, as in a new Redis, the judge would not wait.
                await heartbeat.init_web_stamp(SILENCE)
            await store_clock().query()
        except (db.Error, redis.exceptions.RedisError):
            logger.warning(
                "a store is unavailable; this process writes no heartbeat", exc_info=True
            )
        await asyncio.sleep(PULSE_S)


# In its own thread: when a thousand nodes take their seats, the shared thread is busy for seconds.
_query_maintenance = database_sync_to_async(latest_maintenance, thread_sensitive=False)
