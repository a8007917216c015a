"""The one thread that may use the model."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

Result = TypeVar("Result")


class ModelWorker:
    """Runs training steps and exams one after the other, off the event loop.

    Whoever needs several calls in a row without another's between them holds `turn` meanwhile;
    it is handed on in the order of asking, so an exam waits for one step at most.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self.turn = asyncio.Lock()

    async def run(self, job: Callable[[], Result]) -> Result:
        """Run a job in the model's thread and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, job)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Waits for a job that is still running: the interpreter could not end before it anyway.
        await asyncio.to_thread(self._thread.shutdown)
