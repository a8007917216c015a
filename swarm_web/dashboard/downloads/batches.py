"""Long tables are read in batches by key, so that neither the server nor Postgres holds them.

Each batch is a query of its own: a visitor with a slow line keeps no transaction, cursor or
connection open. Reading and writing run in a thread, because both are work and no waiting; a
synchronous iterator would, under ASGI, be read to its end before the first byte leaves.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

# About so many rows are read from the database, and written to the visitor, at a time.
CHUNK = 4_000
_MOST_KEYS = 500

Row = tuple[Any, ...]
Key = TypeVar("Key")


def read_batches(
    keys: Sequence[Key], select: Callable[[Sequence[Key]], Sequence[Row]], *, size: int = CHUNK
) -> Iterator[Sequence[Row]]:
    """Yield the rows of all keys in order, about `size` at a time; `select` reads those of a few.

    How many keys make a batch follows from how many rows the last ones had; a key's rows are never
    divided.
    """
    at, count = 0, 1
    while at < len(keys):
        rows = select(keys[at : at + count])
        at += count
        per_key = max(1.0, len(rows) / count)
        count = min(_MOST_KEYS, 4 * count, max(1, int(size / per_key)))
        yield rows


async def stream(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Make each part in a thread, when the one before has been sent; empty ones are left out."""
    while (part := await sync_to_async(_next)(parts)) is not None:
        if part:
            yield part


def _next(parts: Iterator[bytes]) -> bytes | None:
    part = next(parts, None)
    # A connection that nobody needs until the next part goes back to its pool.
    close_old_connections()
    return part
