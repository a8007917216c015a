"""One object per event loop, and how a task is ended.

asyncio's objects belong to the loop that they were created in. A web process has one loop; tests
and management commands have several.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import TypeVar
from weakref import WeakKeyDictionary

Made = TypeVar("Made")
_CANCEL_AGAIN_S = 0.1


def one_per_loop(make: Callable[[], Made]) -> Callable[[], Made]:
    """Call `make` once per event loop, and return the same object in later calls.

    Objects are dropped with their loops. Call the decorated function in an event loop.
    """
    made: WeakKeyDictionary[asyncio.AbstractEventLoop, Made] = WeakKeyDictionary()

    @wraps(make)
    def get() -> Made:
        loop = asyncio.get_running_loop()
        if loop not in made:
            made[loop] = make()
        return made[loop]

    return get


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel a task until it has ended.

    redis-py and asgiref sometimes lose a cancellation that arrives during a call, and a loop around
    the call would run on.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=_CANCEL_AGAIN_S)
