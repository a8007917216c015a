"""A short-lived cache in each process, for data that all visitors share.

Each cache key contains the token of the site's state, an opaque text that changes when pages must
show something new (`dashboard.reports.home.read_state`). Pages and live messages contain the token
too. So a page with a new token contains nothing that was cached before the token changed.
"""

import hashlib
import threading
import time
from collections.abc import Callable
from typing import TypeVar, cast

from django.conf import settings
from django.core.cache import caches

T = TypeVar("T")


class SiteState:
    """The token of the site's state as this process last read it; empty before the first reading.

    `clock` returns seconds. Methods take a function `read` that reads the current token.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.token = ""
        self._clock = clock
        self._read_at = float("-inf")
        # One thread reads at a time, so that an older reading never replaces a newer one.
        self._lock = threading.Lock()

    def renew(self, read: Callable[[], str]) -> str:
        """Read the token now, store it in `token`, and return it."""
        with self._lock:
            begun_at = self._clock()
            self.token = read()
            self._read_at = begun_at
            return self.token

    def recall(self, read: Callable[[], str], *, max_age_s: float) -> str:
        """Return the token; read it first if the last reading is at least `max_age_s` old.

        While another thread reads, return the last token without waiting. A page with an old
        token does no harm: the visitor's browser fetches the page again.
        """
        is_old = self._clock() - self._read_at >= max_age_s
        return self.token if not is_old or self._lock.locked() else self.renew(read)


site_state = SiteState()


def keep_briefly(key: str, make: Callable[[], T]) -> T:
    """Return the cached value of a key; if there is none, call `make` and cache its result.

    The key may be any text. A value expires after PAGE_CACHE_SECONDS. It expires earlier if this
    process learns that the site's state has changed (`site_state`). Use this function only for
    pages and the API, whose data may be PAGE_CACHE_SECONDS old. Never use it for what the live
    socket sends: no later message would correct an old value.
    """
    digest = hashlib.sha256(f"{site_state.token}:{key}".encode()).hexdigest()
    return cast(
        "T", caches["brief"].get_or_set(f"brief:{digest}", make, settings.PAGE_CACHE_SECONDS)
    )
