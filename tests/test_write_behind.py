"""Test that queued data is written soon, together, again after a failure, and on closing."""

import asyncio

import pytest
import redis.exceptions
from django import db

from swarm_web.core import write_behind
from swarm_web.core.write_behind import WriteBehind
from tests.sockets import PATIENCE_S

AWAY = redis.exceptions.ConnectionError("away")


class Notes:
    """Collects notes and writes them, unless the store fails the next `failures` times."""

    def __init__(
        self,
        *,
        pause_s: float = 0.001,
        failures: int = 0,
        failure: Exception = AWAY,
    ) -> None:
        self.waiting: list[str] = []
        self.written: list[list[str]] = []
        self.failures, self.failure = failures, failure
        self.wrote = asyncio.Event()
        self.writer = WriteBehind(self._write, pause_s=pause_s, name="notes")

    def add(self, *notes: str) -> None:
        self.waiting += notes
        self.writer.wake()

    async def _write(self) -> None:
        if self.failures:
            self.failures -= 1
            raise self.failure
        if self.waiting:
            self.written.append(self.waiting)
            self.waiting = []
            self.wrote.set()

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.wrote.wait()
        self.wrote.clear()


async def test_items_added_together_are_written_together() -> None:
    notes = Notes()
    notes.add("a")
    notes.add("b")
    await notes.wait()
    assert notes.written == [["a", "b"]]


async def test_items_added_after_a_write_are_written() -> None:
    notes = Notes()
    notes.add("a")
    await notes.wait()
    notes.add("b")
    await notes.wait()
    assert notes.written == [["a"], ["b"]]


@pytest.mark.parametrize(
    "failure",
    [
        AWAY,
        redis.exceptions.OutOfMemoryError("full"),
        db.OperationalError("away"),
        db.InternalError("cannot execute INSERT in a read-only transaction"),
    ],
)
async def test_write_is_retried_while_the_store_is_unavailable(
    failure: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_behind, "_RETRY_S", 0.001)
    notes = Notes(failures=3, failure=failure)
    notes.add("a")
    await notes.wait()
    assert notes.written == [["a"]]


async def test_closing_writes_immediately() -> None:
    notes = Notes(pause_s=3600)
    notes.add("a")
    await notes.writer.close()
    assert notes.written == [["a"]]


@pytest.mark.parametrize("failure", [db.OperationalError("away"), db.DataError("a bug of ours")])
async def test_closing_after_a_failure_ends_and_logs_the_loss(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    notes = Notes(pause_s=3600, failures=1, failure=failure)
    notes.add("a")
    await notes.writer.close()
    assert "notes: could not write the remaining data, it is lost" in caplog.text
