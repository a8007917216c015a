"""Run a stack of parts in the foreground, and leave nothing of it behind."""

import asyncio
import signal
from collections.abc import Sequence
from types import TracebackType

from swarm_web.local.console import Console
from swarm_web.local.errors import LaunchError
from swarm_web.local.keeper import Keeper
from swarm_web.local.parts import Part
from swarm_web.local.running import spawn

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """An async context in which parts live.

    1. `start()` brings up parts that do not need each other: one tier.
    2. A tier stands on those before it, so leaving the context stops the tiers in reverse.
    3. SIGINT, SIGTERM and SIGHUP end the context's body by cancelling it; a second one kills
       every part at once.

    `keep_open` are descriptors that every part inherits.
    """

    def __init__(self, console: Console, *, keep_open: Sequence[int] = ()) -> None:
        self._console = console
        self._keep_open = keep_open
        self._tiers: list[list[Keeper]] = []
        self._asked_to_stop = False
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
        return self._asked_to_stop and isinstance(error, asyncio.CancelledError)

    async def start(self, *parts: Part) -> None:
        """Start a tier of parts and return when all of them are ready.

        Raises LaunchError when one ends, or is not ready in time.
        """
        tier = [Keeper(part, console=self._console, keep_open=self._keep_open) for part in parts]
        self._tiers.append(tier)
        await asyncio.gather(*(keeper.start() for keeper in tier))

    async def run(self, part: Part) -> None:
        """Run a part that ends by itself. Raises LaunchError when it fails."""
        running = await spawn(part, keep_open=self._keep_open)
        status = await running.outlive(self._console)
        if status != 0:
            raise LaunchError(
                f"{part.name} failed with status {status} (`{' '.join(part.command)}`); "
                "its last lines are above."
            )

    def ask_to_stop(self) -> None:
        """End the context's body; asking again changes nothing."""
        if self._asked_to_stop:
            return
        self._asked_to_stop = True
        self._console.say("Stopping (once more kills everything at once)")
        if self._body is not None:
            self._body.cancel()

    def _on_signal(self) -> None:
        if not self._asked_to_stop:
            self.ask_to_stop()
            return
        for tier in self._tiers:
            for keeper in tier:
                keeper.kill()

    async def _stop(self) -> None:
        for tier in reversed(self._tiers):
            await asyncio.gather(*(keeper.stop() for keeper in tier))
        if self._tiers:
            self._console.say("Everything has stopped")
