"""The thread that runs all work on the model."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Self, TypeVar

Result = TypeVar("Result")


class ModelWorker:
    """Runs training steps and answers to the judge one after another, outside the event loop.

    Training steps, held-out questions and judge rounds hold the lock `turn` while they use the
    model. The lock is granted in the order of requests, so a judge round waits for at most one step
    or one batch of held-out questions. Jobs that need no lock, such as writing a checkpoint, can
    delay it further.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self.turn = asyncio.Lock()

    async def run(self, job: Callable[[], Result]) -> Result:
        """Run a job in the model's thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        # Waits for a running job: the interpreter could not exit before it anyway.
        await asyncio.to_thread(self._thread.shutdown)
