"""Keep one part running: start it, write its lines, start it again when it ends."""

import asyncio
import contextlib
import signal
from collections.abc import Sequence

from swarm_web.local.console import Console
from swarm_web.local.errors import LaunchError
from swarm_web.local.parts import Part, at_once
from swarm_web.local.running import Running, spawn

# How often a part is asked whether it is ready: less and less, as some write each time into their
# logs that they are not.
_FIRST_POLL_S = 0.05
_LONGEST_POLL_S = 0.4
_FIRST_DELAY_S = 0.5
_LONGEST_DELAY_S = 30.0
# A part that lived this long has recovered: its next end counts as a first one.
_STEADY_S = 60.0


def describe_end(status: int) -> str:
    """Say how a process ended, by its status as `subprocess` gives it."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


class Keeper:
    """The life of one part. The pause before a new start doubles with every early end."""

    def __init__(self, part: Part, *, console: Console, keep_open: Sequence[int] = ()) -> None:
        self._part = part
        self._console = console
        self._keep_open = keep_open
        self._delay_s = _FIRST_DELAY_S
        self._running: Running | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the part and wait until it is ready.

        Raises LaunchError when it ends before that or is not ready in time.
        """
        first = self._running = await spawn(self._part, keep_open=self._keep_open)
        self._task = asyncio.create_task(self._keep(first))
        if problem := await self._find_problem(first):
            raise LaunchError(f"{self._part.name} {problem}; its last lines are above.")

    async def stop(self) -> None:
        """Ask the part to end, and kill what is left of it when its time is over."""
        self._stopping.set()
        if self._task is None or self._running is None:
            return
        self._running.ask_to_stop()
        _, late = await asyncio.wait({self._task}, timeout=self._part.stop_within_s)
        if late:
            self._console.say(f"{self._part.name} did not end in time and is killed")
            self.kill()
            await self._task

    def kill(self) -> None:
        """Kill the part's processes now, and do not start it again."""
        self._stopping.set()
        if self._running is not None and self._running.process.returncode is None:
            self._running.kill(self._part.kill_signal)

    async def _find_problem(self, running: Running) -> str:
        """Return why the process did not get ready, or nothing as soon as it is."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._part.ready_within_s
        pause_s = _FIRST_POLL_S
        while not await asyncio.to_thread(self._part.is_ready):
            if (status := running.process.returncode) is not None:
                return f"{describe_end(status)} while starting"
            if clock() > deadline:
                return f"was not ready within {self._part.ready_within_s:g} s"
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _LONGEST_POLL_S)
        return ""

    async def _keep(self, first: Running) -> None:
        """Outlive one process after the other until asked to stop."""
        clock = asyncio.get_running_loop().time
        running: Running | None = first
        while running is not None:
            began = clock()
            status = await self._outlive(running, is_back=running is not first)
            if clock() - began >= _STEADY_S:
                self._delay_s = _FIRST_DELAY_S
            if not self._stopping.is_set():
                self._console.say(f"{self._part.name} {describe_end(status)}")
            running = self._running = await self._start_again()

    async def _outlive(self, running: Running, *, is_back: bool) -> int:
        """Return the process's status when it has ended; say when one that is back is ready."""
        if not is_back or self._part.is_ready is at_once:
            return await running.outlive(self._console)
        telling = asyncio.create_task(self._tell_when_ready(running))
        status = await running.outlive(self._console)
        await telling
        return status

    async def _tell_when_ready(self, running: Running) -> None:
        problem = await self._find_problem(running)
        if running.process.returncode is None:
            self._console.say(f"{self._part.name} {problem or 'is ready again'}")

    async def _start_again(self) -> Running | None:
        """Start a new process after a pause; None when asked to stop."""
        while not await self._is_stopped_within(self._delay_s):
            self._console.say(f"{self._part.name} is started again after {self._delay_s:g} s")
            self._delay_s = min(2 * self._delay_s, _LONGEST_DELAY_S)
            try:
                return await spawn(self._part, keep_open=self._keep_open)
            except LaunchError as error:
                self._console.say(str(error))
        return None

    async def _is_stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()
