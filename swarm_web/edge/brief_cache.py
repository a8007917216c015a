"""A short-lived cache in each process, for data that all visitors share."""

import hashlib
from collections.abc import Callable
from typing import TypeVar, cast

from django.conf import settings
from django.core.cache import caches

T = TypeVar("T")


def keep_briefly(key: str, make: Callable[[], T]) -> T:
    """Return the value made for this key in the last PAGE_CACHE_SECONDS, or make it now.

    The key may be any text. Use this only for data that pages may show that late anyway
    (swarm_web.edge.page_cache), never for what the live socket sends, because nothing would correct
    it.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cast(
        "T", caches["brief"].get_or_set(f"brief:{digest}", make, settings.PAGE_CACHE_SECONDS)
    )
