"""The live leaderboard of one web process: read once per change, sent to all of its sockets.

A ring on `bus.VIEWERS` says that something changed; presence changes without a ring, so the
board is read every `IDLE_S` seconds anyway, and at most once in `PAUSE_S`. Each reading sends a
delta even when nothing changed: it tells browsers that they are up to date.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.template.loader import render_to_string
from django.utils import timezone

from judge.models import Round, Ruling
from swarm_web import bus
from swarm_web.dashboard.reports.board import read_board, read_lines
from swarm_web.dashboard.reports.pill import read_pill

logger = logging.getLogger(__name__)

PAUSE_S = 1.0
IDLE_S = 15.0

Message = dict[str, Any]
Send = Callable[[Message], None]


@dataclass(frozen=True)
class View:
    """What browsers of one window see: HTML fragments by the page's own templates.

    `charted` names the state that charts and texts show: the last closed round and the operator's
    last ruling. `as_of` is when it was read; a browser that comes later gets it up to IDLE_S old.
    `seq` counts readings, so that a browser that misses a delta notices.
    """

    as_of: datetime
    pill: str
    rows: dict[str, str]
    order: list[str]
    charted: tuple[int | None, int | None]
    seq: int


def read_view(window: str, *, seq: int = 0) -> View:
    """Read and render one window's view."""
    now = timezone.now()
    board = read_board(window, now=now)
    lines = read_lines(board)
    last = Round.objects.filter(phase=Round.Phase.CLOSED).values_list("number", flat=True).first()
    ruling = Ruling.objects.values_list("pk", flat=True).first()
    return View(
        as_of=now,
        pill=render_to_string("partials/pill.html", {"pill": read_pill(now=now)}),
        rows={
            line.row.node: render_to_string("partials/row.html", {"line": line}) for line in lines
        },
        order=[line.row.node for line in lines],
        charted=(last, ruling),
        seq=seq,
    )


def describe_snapshot(view: View, *, now: datetime) -> Message:
    """Return everything, for a browser that connects at `now` and sets its clock by it."""
    return {
        "type": "snapshot",
        "seq": view.seq,
        "now": now.isoformat(),
        "as_of": view.as_of.isoformat(),
        "pill": view.pill,
        "rows": view.rows,
        "order": view.order,
        "chart": True,
    }


def describe_delta(old: View, new: View) -> Message:
    """Return what changed: rows whose fragment differs, and the order if it does."""
    message: Message = {
        "type": "delta",
        "seq": new.seq,
        "now": new.as_of.isoformat(),
        "as_of": new.as_of.isoformat(),
        "rows": {node: html for node, html in new.rows.items() if old.rows.get(node) != html},
        "chart": new.charted != old.charted,
    }
    if new.pill != old.pill:
        message["pill"] = new.pill
    if new.order != old.order:
        message["order"] = new.order
    return message


class LiveBoard:
    """The views of one event loop's sockets, by window, kept fresh while anybody watches."""

    def __init__(self) -> None:
        self._watchers: defaultdict[str, set[Send]] = defaultdict(set)
        self._views: dict[str, View] = {}
        self._rung = asyncio.Event()
        self._listening = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_watched(self) -> bool:
        """Whether any browser is connected to this process."""
        return bool(self._watchers)

    async def join(self, window: str, send: Send) -> None:
        """Send the window's snapshot, then every delta after it."""
        if self._task is None:
            self._listening = asyncio.Event()
            self._task = asyncio.create_task(self._run())
        await self._listening.wait()
        if window not in self._views:
            view = await database_sync_to_async(read_view)(window)
            self._views.setdefault(window, view)
            # What changed during that first reading was announced to nobody: read again soon.
            self._rung.set()
        # No await from here on: no delta can come between snapshot and membership.
        send(describe_snapshot(self._views[window], now=timezone.now()))
        self._watchers[window].add(send)

    def leave(self, window: str, send: Send) -> None:
        """Send no more; stop reading when nobody is left."""
        self._watchers[window].discard(send)
        if not self._watchers[window]:
            del self._watchers[window]
            self._views.pop(window, None)
        if not self._watchers and self._task is not None:
            bus.switchboard().forget(bus.VIEWERS, self._hear)
            self._task.cancel()
            self._task = None

    def _hear(self, _payload: str) -> None:
        self._rung.set()

    async def _run(self) -> None:
        await bus.switchboard().listen(bus.VIEWERS, self._hear)
        self._listening.set()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(IDLE_S):
                    await self._rung.wait()
            self._rung.clear()
            for window in tuple(self._watchers):
                try:
                    await self._refresh(window)
                except DatabaseError:
                    # Browsers keep what they have and see its age; the next reading goes on.
                    logger.warning("could not read the live board", exc_info=True)
            await asyncio.sleep(PAUSE_S)

    async def _refresh(self, window: str) -> None:
        old = self._views[window]
        new = await database_sync_to_async(read_view)(window, seq=old.seq + 1)
        if window not in self._watchers:
            return
        self._views[window] = new
        delta = describe_delta(old, new)
        for send in tuple(self._watchers[window]):
            send(delta)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, LiveBoard] = WeakKeyDictionary()


def live_board() -> LiveBoard:
    """Return the running event loop's live board."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = LiveBoard()
    return _by_loop[loop]
