"""What a moment's visitors have in common is read once for all of them, in each process."""

import hashlib
from collections.abc import Callable
from typing import TypeVar, cast

from django.conf import settings
from django.core.cache import caches

T = TypeVar("T")


def keep_briefly(key: str, make: Callable[[], T]) -> T:
    """Return what was made under this key in the last PAGE_CACHE_SECONDS, or make it now.

    The key may be any text. Only for what pages may be that late with anyway
    (swarm_web.edge.page_cache): never for what the live socket sends, which nothing would correct.
    """
    digest = hashlib.sha256(key.encode()).hexdigest()
    return cast(
        "T", caches["brief"].get_or_set(f"brief:{digest}", make, settings.PAGE_CACHE_SECONDS)
    )
