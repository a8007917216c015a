"""Reads long tables in batches of keys, so that neither the server nor Postgres holds all rows.

Each batch is a separate query: a visitor with a slow connection keeps no transaction, cursor or
database connection open. `stream` reads and encodes batches in a thread, so that they do not block
the event loop. `stream` is asynchronous because under ASGI Django reads a synchronous iterator to
its end before it sends a byte.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from swarm_web.dashboard.downloads.formats import Row

# Approximate number of rows that are read and sent at a time.
CHUNK = 4_000
_MAX_KEYS = 500

Key = TypeVar("Key")


def read_batches(
    keys: Sequence[Key], select: Callable[[Sequence[Key]], Sequence[Row]], *, size: int = CHUNK
) -> Iterator[Sequence[Row]]:
    """Yield the rows of all keys, in the order of the keys, in batches of about `size` rows.

    `select` returns the rows of the keys that it is given, in their order. All rows of a key are in
    one batch. The first batch has one key. For each later batch, the number of keys is estimated
    from the number of rows per key in the batch before it.
    """
    at, count = 0, 1
    while at < len(keys):
        rows = select(keys[at : at + count])
        at += count
        per_key = max(1.0, len(rows) / count)
        count = min(_MAX_KEYS, 4 * count, max(1, int(size / per_key)))
        yield rows


async def stream(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield all parts except empty ones; read each in a thread, after the previous one was sent."""
    while (part := await sync_to_async(_next)(parts)) is not None:
        if part:
            yield part


def _next(parts: Iterator[bytes]) -> bytes | None:
    part = next(parts, None)
    # The connection is not needed until the next part: return it to the pool.
    close_old_connections()
    return part
