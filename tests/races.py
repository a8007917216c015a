"""Run two concurrent changes of the same rows in a fixed order."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from django.db import connection, transaction

T = TypeVar("T")

# The number of sessions that wait for a lock of this connection.
_WAITING = """
    SELECT count(*) FROM pg_locks
    WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))
"""


@contextmanager
def committed_while_waited_for(
    function: Callable[..., T], *args: Any, **kwargs: Any
) -> Iterator[Any]:
    """Start a call that waits for the block's uncommitted changes, and then commit them.

    The block receives a list, to which the call's future is added; it is done after the block.
    """

    def call() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close()

    futures: list[Future[T]] = []
    with ThreadPoolExecutor(max_workers=1) as threads, transaction.atomic():
        yield futures
        futures.append(threads.submit(call))
        _wait_for_waiter(futures[0])


def _wait_for_waiter(call: Future[Any]) -> None:
    """Return when the call waits for a lock of this connection, or is done."""
    waiting = 0
    while not waiting and not call.done():
        with connection.cursor() as cursor:
            cursor.execute(_WAITING)
            waiting = cursor.fetchone()[0]
