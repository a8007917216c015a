"""Pauses between two steps: on request, outside the configured hours, on battery."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from time import monotonic

import psutil

from node_client.display.lines import describe_pause
from node_client.display.view import NodeView
from node_client.runtime.startup import read_clock
from node_client.settings.config import Settings
from node_client.settings.hours import is_within, next_start, parse_hours
from node_client.storage.pauses import Pause, read_pause

# How often a node checks whether to pause or to continue.
POLL_S = 1.0

log = logging.getLogger(__name__)


def runs_on_battery() -> bool:
    """Return whether this machine runs on battery."""
    read_battery = getattr(psutil, "sensors_battery", None)  # not on every system
    battery = read_battery() if read_battery is not None else None
    return battery is not None and battery.power_plugged is False


class Pauses:
    """Pauses a node on request, outside its hours or on battery.

    Each pause is shown by `view`, which also reports it to its own listeners.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        view: NodeView,
        now: Callable[[], datetime] = read_clock,
        on_battery: Callable[[], bool] = runs_on_battery,
        poll_s: float = POLL_S,
    ) -> None:
        self._state = settings.state
        self._hours = parse_hours(settings.hours) if settings.hours is not None else ()
        self._pauses_on_battery = settings.pause_on_battery
        self._view = view
        self._now = now
        self._on_battery = on_battery
        self._poll_s = poll_s
        self._checked_at = -poll_s
        self._current: Pause | None = None

    def due(self) -> Pause | None:
        """Return why the node should pause, or None if it should not.

        The reasons are checked at most once every `poll_s` seconds. Between two checks, the result
        of the earlier check is returned.
        """
        if monotonic() - self._checked_at >= self._poll_s:
            self._current = self._check()
            self._checked_at = monotonic()
        return self._current

    async def pause_while_due(
        self,
        *,
        stopping: asyncio.Event,
        before: Callable[[], Awaitable[None]],
        after: Callable[[], None],
    ) -> bool:
        """Pause while `due` returns a reason. Return whether there was a pause.

        Without a reason at the start, there is no pause. The event `stopping` is set when the node
        is stopped; this ends the pause too. `before` is called when the pause starts. `after` is
        called when the pause ends, but not if the node was stopped.
        """
        pause = self.due()
        if pause is None:
            return False
        log.info(describe_pause(pause))
        await before()
        while pause is not None and not stopping.is_set():
            self._view.show_pause(pause)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_s):
                    await stopping.wait()
            pause = self.due()
        self._view.show_pause(None)
        if not stopping.is_set():
            log.info("the pause has ended")
            after()
        return True

    def _check(self) -> Pause | None:
        now = self._now()
        requested = read_pause(self._state, now=now)
        if requested is not None:
            return requested
        if self._hours and not is_within(self._hours, now):
            if self._current is not None and self._current.reason == "hours":
                return self._current
            return Pause("hours", next_start(self._hours, now))
        if self._pauses_on_battery and self._on_battery():
            return Pause("battery")
        return None
