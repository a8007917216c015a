"""Run processes in the foreground, restart those that end, and stop all of them at the end."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType

from swarm_web.local import LaunchError
from swarm_web.local.console import Console
from swarm_web.local.process import SiteProcess, StartedProcess, always_ready, spawn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Pauses between two readiness checks. They grow, because some programs log every failed check.
_FIRST_POLL_S = 0.05
_MAX_POLL_S = 0.4
_FIRST_DELAY_S = 0.5
_MAX_DELAY_S = 30.0
# A process that ran this long has recovered: the pause before its next restart is the first one.
_RECOVERED_AFTER_S = 60.0
_PARENT_POLL_S = 0.5


class Supervisor:
    """Async context manager that starts processes, keeps them running, and stops them at the end.

    1. Each call of `start()` starts one tier: processes that do not depend on each other.
    2. A tier may depend on earlier ones, so leaving the context stops the tiers in reverse order.
    3. SIGINT, SIGTERM and SIGHUP end the context's body by cancelling it; a second signal kills
       every process at once.

    `keep_open` are file descriptors that every process inherits.
    """

    def __init__(self, console: Console, *, keep_open: Sequence[int] = ()) -> None:
        self._console = console
        self._keep_open = keep_open
        self._tiers: list[list[Keeper]] = []
        self._stop_requested = False
        self._body: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "Supervisor":
        self._body = asyncio.current_task()
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._on_signal)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        await self._stop()
        for number in _SIGNALS:
            asyncio.get_running_loop().remove_signal_handler(number)
        return self._stop_requested and isinstance(error, asyncio.CancelledError)

    async def start(self, *processes: SiteProcess) -> None:
        """Start a tier of processes and return when all of them are ready.

        Raises LaunchError when one cannot be started, ends before it is ready, or is not ready in
        time.
        """
        tier = [
            Keeper(each, console=self._console, keep_open=self._keep_open) for each in processes
        ]
        self._tiers.append(tier)
        await asyncio.gather(*(keeper.start() for keeper in tier))

    async def run(self, process: SiteProcess) -> None:
        """Run a process that ends by itself. Raises LaunchError when it fails."""
        started = await spawn(process, keep_open=self._keep_open)
        status = await started.follow(self._console)
        if status != 0:
            raise LaunchError(
                f"{process.name} failed with status {status} (`{' '.join(process.command)}`); "
                "its last lines are above."
            )

    def request_stop(self) -> None:
        """Cancel the body of the supervisor's `async with`, and print that the site is stopping.

        Further calls have no effect.
        """
        if self._stop_requested:
            return
        self._stop_requested = True
        self._console.write("Stopping (Ctrl-C again kills all processes)")
        if self._body is not None:
            self._body.cancel()

    def _on_signal(self) -> None:
        if not self._stop_requested:
            self.request_stop()
            return
        for tier in self._tiers:
            for keeper in tier:
                keeper.kill()

    async def _stop(self) -> None:
        for tier in reversed(self._tiers):
            await asyncio.gather(*(keeper.stop() for keeper in tier))
        if self._tiers:
            self._console.write("All processes have stopped")


class Keeper:
    """Keeps one process running: restarts it whenever it ends.

    The pause before a restart is half a second at first and doubles each time, up to half a minute.
    After a run of at least a minute, the pause is half a second again.
    """

    def __init__(
        self, process: SiteProcess, *, console: Console, keep_open: Sequence[int] = ()
    ) -> None:
        self._process = process
        self._console = console
        self._keep_open = keep_open
        self._delay_s = _FIRST_DELAY_S
        self._started: StartedProcess | None = None
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the process and wait until it is ready.

        Raises LaunchError when it cannot be started, ends before it is ready, or is not ready in
        time.
        """
        first = self._started = await spawn(self._process, keep_open=self._keep_open)
        self._task = asyncio.create_task(self._keep_running(first))
        if problem := await self._find_problem(first):
            raise LaunchError(f"{self._process.name} {problem}; its last lines are above.")

    async def stop(self) -> None:
        """Ask the process to end, and kill its group if it has not ended within its time limit."""
        self._stopping.set()
        if self._task is None or self._started is None:
            return
        self._started.request_stop()
        _, late = await asyncio.wait({self._task}, timeout=self._process.stop_timeout_s)
        if late:
            self._console.write(f"{self._process.name} did not end in time; killing it")
            self.kill()
            await self._task

    def kill(self) -> None:
        """Kill the process and its group now, and do not restart it."""
        self._stopping.set()
        if self._started is not None and self._started.process.returncode is None:
            self._started.kill(self._process.kill_signal)

    async def _find_problem(self, started: StartedProcess) -> str:
        """Wait until the process is ready; return why it did not get ready, or an empty string."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._process.ready_timeout_s
        pause_s = _FIRST_POLL_S
        while not await asyncio.to_thread(self._process.is_ready):
            if (status := started.process.returncode) is not None:
                return f"{describe_exit(status)} while starting"
            if clock() > deadline:
                return f"was not ready within {self._process.ready_timeout_s:g} s"
            await asyncio.sleep(pause_s)
            pause_s = min(1.5 * pause_s, _MAX_POLL_S)
        return ""

    async def _keep_running(self, first: StartedProcess) -> None:
        """Follow the process, and restart it whenever it ends, until asked to stop."""
        clock = asyncio.get_running_loop().time
        started: StartedProcess | None = first
        while started is not None:
            started_at = clock()
            status = await self._follow(started, is_restart=started is not first)
            if clock() - started_at >= _RECOVERED_AFTER_S:
                self._delay_s = _FIRST_DELAY_S
            if not self._stopping.is_set():
                self._console.write(f"{self._process.name} {describe_exit(status)}")
            started = self._started = await self._restart()

    async def _follow(self, started: StartedProcess, *, is_restart: bool) -> int:
        """Wait until a process has ended, and return its exit status.

        If a restarted process has a readiness check, also print when it is ready, or why it is not.
        """
        if not is_restart or self._process.is_ready is always_ready:
            return await started.follow(self._console)
        reporting = asyncio.create_task(self._report_when_ready(started))
        status = await started.follow(self._console)
        await reporting
        return status

    async def _report_when_ready(self, started: StartedProcess) -> None:
        problem = await self._find_problem(started)
        if started.process.returncode is None:
            self._console.write(f"{self._process.name} {problem or 'is ready again'}")

    async def _restart(self) -> StartedProcess | None:
        """Start the process again after a pause and return it; return None if asked to stop."""
        while not await self._is_stopped_within(self._delay_s):
            self._console.write(f"{self._process.name} is started again after {self._delay_s:g} s")
            self._delay_s = min(2 * self._delay_s, _MAX_DELAY_S)
            try:
                return await spawn(self._process, keep_open=self._keep_open)
            except LaunchError as error:
                self._console.write(str(error))
        return None

    async def _is_stopped_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)
        return self._stopping.is_set()


def describe_exit(status: int) -> str:
    """Return text that says how a process ended; `status` is its `subprocess` return code."""
    if status < 0:
        return f"was killed by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def catches_interrupt(pid: int) -> bool:
    """Return whether a process has a handler for SIGINT; false where that is unknown.

    Linux lists the signals that a process catches (proc_pid_status(5), SigCgt).
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    mask = next((line for line in status.splitlines() if line.startswith("SigCgt:")), "SigCgt: 0")
    return bool(int(mask.split()[1], 16) >> (signal.SIGINT - 1) & 1)


def watch_for_interrupt(pid: int) -> Coroutine[None, None, None]:
    """Return a coroutine that waits until a process has no handler for SIGINT any more.

    The first check is made in this call. If the process has no handler then, the coroutine never
    returns.

    The launcher uses it to stop when its parent, make, is interrupted. Ctrl-C in a terminal sends
    SIGINT to both. A script or a process manager may send SIGINT to make alone. Make does not pass
    the signal on: it removes its handler and waits for the launcher to end.
    """
    return _wait_while_caught(pid) if catches_interrupt(pid) else _wait_forever()


async def _wait_while_caught(pid: int) -> None:
    while catches_interrupt(pid):  # noqa: ASYNC110  # another process's state sets no event
        await asyncio.sleep(_PARENT_POLL_S)
    # The same Ctrl-C may be on its way to us. Without this pause it would count as a second one.
    await asyncio.sleep(_PARENT_POLL_S)


async def _wait_forever() -> None:
    await asyncio.Event().wait()
