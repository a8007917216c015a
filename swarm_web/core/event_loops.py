"""Helpers for asyncio: objects that exist once per event loop, and reliable cancellation.

asyncio's objects belong to the loop that they were created in. A web process has one loop; tests
and management commands have several.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Value = TypeVar("Value")
_CANCEL_AGAIN_S = 0.1


def one_per_loop(make: Callable[[], Value]) -> Callable[[], Value]:
    """Decorate `make`: call it once per event loop, and return the same object in later calls.

    An object is dropped with its loop, unless it refers to the loop, for example through a task:
    then both are kept. Call the decorated function in an event loop.
    """
    objects: WeakKeyDictionary[asyncio.AbstractEventLoop, Value] = WeakKeyDictionary()

    @wraps(make)
    def get() -> Value:
        loop = asyncio.get_running_loop()
        if loop not in objects:
            objects[loop] = make()
        return objects[loop]

    return get


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel a task, again and again, until it has ended. Does not raise the task's exception.

    One cancellation is not enough: redis-py and asgiref sometimes lose one that arrives during a
    call, and the task continues.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)
