"""What the logs say while Postgres or Redis is away: one line now and then, not a flood.

Everything that needs a store fails while it is away, each time with a hundred lines of traceback
that always say the same. What matters is that it is away, and since when.
"""

import logging

import kombu.exceptions
import redis.exceptions
from celery.beat import SchedulingError
from django import db

from swarm_web.spaced_log import SpacedFilter, first_line

# How clients say that a store is away.
AWAY = (
    db.OperationalError,
    db.InterfaceError,
    kombu.exceptions.OperationalError,
    redis.exceptions.ConnectionError,
    redis.exceptions.ClusterError,
    redis.exceptions.TimeoutError,
    SchedulingError,
)


class OutageFilter(SpacedFilter):
    """Turn the traceback of a store that is away into one line."""

    def shorten(self, record: logging.LogRecord) -> str | None:
        """Say what failed, and why."""
        problem = record.exc_info[1] if record.exc_info else None
        if not isinstance(problem, AWAY):
            return None
        said, why = first_line(record.getMessage()), first_line(str(problem))
        return said if why in said else f"{said}: {why}"
