"""A short-lived cache in each process, for data that all visitors share, and the state of the site.

The state is an opaque token that pages and live messages contain. Cached data belongs to the state
in which it was requested: a page that shows a new state contains nothing that was cached earlier.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

from django.conf import settings
from django.core.cache import caches

T = TypeVar("T")


class SharedState:
    """The state of the site as a process last read it."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = ""
        self._clock = clock
        self._read_at = float("-inf")
        # One thread reads at a time, so that an older reading never replaces a newer one.
        self._lock = threading.Lock()

    def renew(self, read: Callable[[], str]) -> str:
        """Read the token now and return it."""
        with self._lock:
            begun_at = self._clock()
            self.token = read()
            self._read_at = begun_at
            return self.token

    def recall(self, read: Callable[[], str], *, max_age_s: float) -> str:
        """Return the token, after reading it if the last reading is at least `max_age_s` old.

        While another thread reads, the last token is returned: a page with an old token is only
        fetched once more.
        """
        is_old = self._clock() - self._read_at >= max_age_s
        return self.token if not is_old or self._lock.locked() else self.renew(read)


site_state = SharedState()


def keep_briefly(key: str, make: Callable[[], T]) -> T:
    """Return the value made for this key in the last PAGE_CACHE_SECONDS, or make it now.

    The key may be any text. Use this only for data that pages may show that late anyway
    (swarm_web.edge.page_cache), never for what the live socket sends, because nothing would correct
    it.
    """
    digest = hashlib.sha256(f"{site_state.token}:{key}".encode()).hexdigest()
    return cast(
        "T", caches["brief"].get_or_set(f"brief:{digest}", make, settings.PAGE_CACHE_SECONDS)
    )
