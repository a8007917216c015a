"""The shutdown of a web process: dismisses its nodes and completes their pending messages.

On a stop signal uvicorn closes all sockets immediately, even while their messages are being
handled. So this module handles SIGTERM and SIGINT first, and passes them to uvicorn when all node
connections have ended, or after GATEWAY_DRAIN_S seconds. Pages are served until then.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable
from datetime import datetime
from types import FrameType

from django.conf import settings
from django.utils import timezone

from swarm_protocol.errors import ErrorCode
from swarm_web.core.write_behind import STORE_ERRORS
from swarm_web.gateway.admission import Closure, admission
from swarm_web.gateway.roster import roster
from swarm_web.gateway.session import shared_state
from swarm_web.gateway.staggering import reconnect_spread, time_to_round

logger = logging.getLogger(__name__)

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_ROUND_TIMEOUT_S = 0.5
_REPEAT_S = 0.2
MESSAGE = "the coordinator restarts"


class Drain:
    """The shutdown of all node connections of the event loop; `started` is set at its beginning."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def handle_signals(self) -> None:
        """Install a handler that executes `run` before uvicorn gets the first stop signal.

        uvicorn gets this signal when `run` has ended, and later signals immediately. Does nothing
        outside the main thread.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            if callable(previous):
                self._handle_signal(number, previous, loop)

    def _handle_signal(
        self,
        number: signal.Signals,
        previous: Callable[[int, FrameType | None], object],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        def handle(received: int, frame: FrameType | None) -> None:
            if self._task is None and not loop.is_closed():
                loop.call_soon_threadsafe(self._start, lambda: previous(received, None))
            else:
                previous(received, frame)

        signal.signal(number, handle)

    def _start(self, then: Callable[[], object]) -> None:
        self._task = asyncio.create_task(self.run())
        self._task.add_done_callback(lambda _: then())

    async def run(self) -> None:
        """Refuse new nodes, dismiss the connected ones, and wait until their messages are handled.

        Waits at most GATEWAY_DRAIN_S seconds.
        """
        self.started.set()
        admission().closure = Closure(ErrorCode.SERVER_RESTART, MESSAGE)
        spread_s = await find_spread(len(roster()))
        try:
            async with asyncio.timeout(settings.GATEWAY_DRAIN_S):
                while not await _dismiss_all(spread_s):
                    pass
        except TimeoutError:
            logger.warning("the process stops before all messages of nodes are handled")


async def _dismiss_all(spread_s: float) -> bool:
    """Dismiss all nodes; return whether all connections ended within _REPEAT_S.

    If it returns False, call it again: nodes may have connected meanwhile.
    """
    roster().dismiss_all(ErrorCode.SERVER_RESTART, MESSAGE, spread_s=spread_s)
    waiting = asyncio.create_task(roster().wait_until_empty())
    await asyncio.wait([waiting], timeout=_REPEAT_S)
    all_left = waiting.done()
    waiting.cancel()
    return all_left


async def find_spread(nodes: int) -> float:
    """Return the seconds over which `nodes` nodes should reconnect (`reconnect_spread`).

    If the current or next round cannot be read in time, a round is assumed to be open.
    """
    try:
        async with asyncio.timeout(_ROUND_TIMEOUT_S):
            opens_at = await _read_opening()
        opens_in_s = time_to_round(opens_at, now=timezone.now())
    except (TimeoutError, *STORE_ERRORS):
        opens_in_s = 0.0  # unknown, so assume that a round is open
    return reconnect_spread(
        nodes,
        per_second=settings.GATEWAY_RETURN_PER_SECOND,
        within_s=settings.GATEWAY_RETURN_WITHIN_S,
        opens_in_s=opens_in_s,
    )


async def _read_opening() -> datetime | None:
    """Return when the open round opened, else when the next one opens; None if none is planned."""
    shared = shared_state()
    current = await shared.round.get()
    if current is not None and current.phase == "scoring":
        return await shared.next_opening.get()
    return datetime.fromisoformat(current.opens_at) if current is not None else None
