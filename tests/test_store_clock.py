"""Test that processes use the clock of Redis instead of their machine's clock."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from swarm_web.core.store import async_redis
from swarm_web.core.store_clock import StoreClock, store_clock
from swarm_web.gateway.connection import Connection
from swarm_web.gateway.roster import roster
from swarm_web.nodes.models import Node

SECOND_NS = 1_000_000_000


@pytest_asyncio.fixture(autouse=True)
async def tidy_store() -> AsyncIterator[None]:
    yield
    await async_redis().aclose()


def set_ahead(monkeypatch: pytest.MonkeyPatch, *, by_ns: int) -> None:
    """Move this machine's wall clock, but not its monotonic clock."""
    own = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: own() + by_ns)


async def test_machine_clock_is_used_until_redis_has_answered() -> None:
    clock = StoreClock(async_redis())
    assert abs(clock.now_ns() - time.time_ns()) < SECOND_NS
    assert abs(clock.ahead_s()) < 1


async def test_connections_are_dated_by_redis_if_the_machine_clock_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = time.time_ns()
    set_ahead(monkeypatch, by_ns=3600 * SECOND_NS)
    await store_clock().query()
    assert store_clock().ahead_s() == pytest.approx(-3600, abs=10)
    connection = Connection(Node(), roster(), no_io, no_io, suspend=lambda: 0.0)  # type: ignore[arg-type]
    assert 0 <= connection.opened_ns - before + SECOND_NS < 60 * SECOND_NS


async def no_io(*_: object) -> None:
    """A replacement for the functions of an unused socket."""


class Scripted:
    """A Redis that returns a given time after a given number of nanoseconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = self.took_ns = self.ahead_ns = 0
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)

    def register_script(self, script: str) -> Any:
        async def read_time(keys: object) -> list[bytes]:
            self.now_ns += self.took_ns
            time_ns = self.now_ns - self.took_ns // 2 + self.ahead_ns
            return [b"%d" % (time_ns // SECOND_NS), b"%d" % (time_ns % SECOND_NS // 1000)]

        return read_time

    async def answer(self, clock: StoreClock, *, took_ms: int, ahead_s: float) -> None:
        """Let a clock request the time, with a given duration and offset of the answer."""
        self.took_ns = took_ms * 1_000_000
        self.ahead_ns = round(ahead_s * SECOND_NS)
        await clock.query()


async def test_answer_with_the_shortest_duration_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Scripted(monkeypatch)
    clock = StoreClock(store)  # type: ignore[arg-type]
    for took_ms, ahead_s in [(200, 7.09), (2, 7.0), (300, 6.87)]:
        await store.answer(clock, took_ms=took_ms, ahead_s=ahead_s)
    assert clock.now_ns() - store.now_ns == 7 * SECOND_NS


async def test_clock_follows_a_changed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Scripted(monkeypatch)
    clock = StoreClock(store)  # type: ignore[arg-type]
    await store.answer(clock, took_ms=1, ahead_s=7)
    await store.answer(clock, took_ms=5, ahead_s=60)
    assert clock.now_ns() - store.now_ns == 60 * SECOND_NS
