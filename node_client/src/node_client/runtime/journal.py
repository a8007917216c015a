"""Maintains the run record: the client's state, for `swarm-node status` and health checks."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from node_client.display import events
from node_client.errors import NodeError
from node_client.runtime.startup import read_clock
from node_client.storage.pauses import REASON_TEXTS
from node_client.storage.run_record import RunRecord, write_run
from node_client.storage.state import StateDir

# A small model makes dozens of steps a second, and each write waits for the disk.
WRITE_EVERY = timedelta(seconds=10)

log = logging.getLogger(__name__)


class Journal:
    """Updates the run record during a run. The caller must hold the state folder's lock."""

    def __init__(self, state: StateDir, *, clock: Callable[[], datetime] = read_clock) -> None:
        self._state = state
        self._clock = clock
        self._written = clock()
        self._failed = False
        now = _text(self._written)
        self._record = RunRecord(
            pid=os.getpid(), started_at=now, phase="starting", since=now, noted_at=now
        )

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record the start of a run and, also after an error, its end."""
        problem = "it failed: see its log"
        self._write()
        try:
            yield
            problem = ""
        except NodeError as trouble:
            problem = trouble.message
            raise
        finally:
            self._enter("stopped", problem=problem)

    def on_event(self, event: events.Event) -> None:
        """Update the record from an event.

        After a step, the file is written only if the last write was at least WRITE_EVERY ago.
        """
        match event:
            case events.Started() | events.Resumed():
                self._enter("running")
            case events.Paused():
                self._enter("paused", pause=REASON_TEXTS[event.reason], until=event.until)
            case events.LinkChanged():
                self._update_link(event.phase)
            case events.StepDone():
                self._record = replace(self._record, last_step_at=_text(self._clock()))
                if self._clock() - self._written >= WRITE_EVERY:
                    self._write()

    def _enter(
        self, phase: Any, *, pause: str = "", until: str | None = None, **changes: str
    ) -> None:
        now = _text(self._clock())
        record = replace(self._record, phase=phase, since=now, pause=pause, until=until)
        if phase in ("paused", "stopped"):
            record = replace(record, offline_since=None)
        self._record = replace(record, **changes)
        self._write()

    def _update_link(self, phase: str) -> None:
        """Record that the connection is lost or back, unless the node is paused.

        `phase` is the connection's new phase, such as "connected".
        """
        record = self._record
        if record.phase == "paused" or (phase == "connected") == (record.offline_since is None):
            return
        lost = None if phase == "connected" else _text(self._clock())
        self._record = replace(record, offline_since=lost)
        self._write()

    def _write(self) -> None:
        """Write the record. If this fails, for example on a full disk, no error is raised.

        Of several failures in a row only the first is logged.
        """
        self._written = self._clock()
        self._record = replace(self._record, noted_at=_text(self._written))
        try:
            write_run(self._state, self._record)
        except OSError as problem:
            if not self._failed:
                log.warning("`swarm-node status` cannot show this run correctly: %s", problem)
            self._failed = True
        else:
            self._failed = False


def _text(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
