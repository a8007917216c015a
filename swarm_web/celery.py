"""The Celery app, whose tasks move rounds to their next phase, grade answers and recover lost work.

Start a worker with `celery -A swarm_web worker` and one beat with `celery -A swarm_web beat`.
"""

import asyncio
import gc
import logging
import os
import warnings

import redis.exceptions
from celery import Celery
from celery.exceptions import CPendingDeprecationWarning
from celery.signals import (
    after_setup_logger,
    after_setup_task_logger,
    heartbeat_sent,
    worker_init,
    worker_process_init,
    worker_ready,
)
from django.utils import timezone

from swarm_web.core import heartbeat
from swarm_web.core.log_filters import OutageFilter
from swarm_web.core.store import async_redis
from swarm_web.core.store_version import StoreTooOldError, check_store

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "swarm_web.settings")

app = Celery("swarm_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

logger = logging.getLogger(__name__)


@worker_init.connect
def refuse_old_store(**_signal: object) -> None:
    """Refuse to start if Redis is too old."""
    try:
        asyncio.run(_check_store())
    except StoreTooOldError as problem:
        raise SystemExit(str(problem)) from None


async def _check_store() -> None:
    await check_store(async_redis())
    await async_redis().aclose()


@worker_process_init.connect
def spare_what_is_loaded(**_signal: object) -> None:
    """Exclude all objects loaded so far from garbage collection, when a worker's process starts.

    Otherwise each collection scans them. This doubled the time that the worker takes to record that
    a node trained on a rollout.
    """
    gc.freeze()


@heartbeat_sent.connect
def stamp_worker(**_signal: object) -> None:
    """Write the worker's heartbeat, which /readyz and /status/ read."""
    try:
        heartbeat.stamp(heartbeat.SitePart.WORKER, now=timezone.now())
    except redis.exceptions.RedisError:
        logger.warning("could not leave a sign of life", exc_info=True)


@after_setup_logger.connect
@after_setup_task_logger.connect
def shorten_outages(logger: logging.Logger, **_signal: object) -> None:
    """Shorten the logs of the worker and beat while Postgres or Redis is unavailable."""
    for handler in logger.handlers:
        handler.addFilter(OutageFilter())


@worker_ready.connect
def accept_late_results(**_signal: object) -> None:
    """Suppress Celery's warning that running tasks continue when the broker is lost.

    Running tasks may continue, because all of them are short.
    """
    warnings.filterwarnings("ignore", category=CPendingDeprecationWarning)
