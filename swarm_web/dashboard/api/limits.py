"""How often one address may ask, counted in Redis for all web processes together."""

import logging
import math
import time

import redis.exceptions
from django.conf import settings
from django.http import HttpRequest
from ninja.throttling import BaseThrottle

from swarm_web.addresses import network_of_request
from swarm_web.dashboard.api.paging import MAX_PAGE
from swarm_web.store import sync_redis

logger = logging.getLogger(__name__)

PERIOD_S = 60


class AddressThrottle(BaseThrottle):
    """Allow an address so many requests in each minute of the clock.

    While Redis is away nobody is refused.
    """

    def allow_request(self, request: HttpRequest) -> bool:
        """Count a request, and tell whether it is within the limit."""
        limit: int = settings.API_REQUESTS_PER_MINUTE
        return not limit or self.count(request) <= limit

    def count(self, request: HttpRequest, requests: int = 1) -> int:
        """Count a request as so many and return the address's sum in this minute.

        0 while Redis is away.
        """
        minute = int(time.time() // PERIOD_S)
        key = f"api:requests:{minute}:{network_of_request(request)}"
        try:
            with sync_redis().pipeline() as pipeline:
                pipeline.incrby(key, requests)
                pipeline.expire(key, PERIOD_S)
                counted, _ = pipeline.execute()
        except redis.exceptions.RedisError:
            logger.warning("could not count a request", exc_info=True)
            return 0
        return int(counted)

    def wait(self) -> float:
        """Return the seconds until the next minute begins."""
        return PERIOD_S - time.time() % PERIOD_S


def charge_rows(request: HttpRequest, *, rows: int) -> None:
    """Count an answer of many rows as the pages that a list of as many would fill.

    The request itself is counted already. It is answered even if that overdraws the minute: those
    that follow are refused.
    """
    further = math.ceil(rows / MAX_PAGE) - 1
    if settings.API_REQUESTS_PER_MINUTE and further > 0:
        AddressThrottle().count(request, further)
