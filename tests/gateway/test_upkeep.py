"""Maintenance: nodes are disconnected and refused, and the judge counts an outage."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.utils import timezone

from judge.engine import SILENCE
from node_client.swarm.connection import CoordinatorConnection
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import Refused
from swarm_web.core import heartbeat
from swarm_web.core.event_loops import end_task
from swarm_web.core.store import async_redis
from swarm_web.gateway import pulse
from swarm_web.maintenance import models
from swarm_web.maintenance.models import Maintenance
from swarm_web.maintenance.services import begin_maintenance, end_maintenance
from tests.gateway.conftest import Member
from tests.gateway.test_auth import denied
from tests.node_client.shell_fakes import HELLO, Notebook
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S, node_socket


@pytest.fixture(autouse=True)
def fast_pulse(tidy_stores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "PULSE_S", POLL_S)
    # Its threads are not asgiref's, so their connections would not be closed.
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)


@asynccontextmanager
async def running_pulse() -> AsyncIterator[None]:
    """Run the pulse of a web process."""
    running = asyncio.create_task(pulse.keep_pulse(asyncio.Event()))
    try:
        yield
    finally:
        await end_task(running)


async def begin(message: str = "new disks") -> Maintenance:
    return await sync_to_async(begin_maintenance)(message=message, until=None, now=timezone.now())


async def test_nodes_are_disconnected_with_the_reason_and_a_retry_time(
    gateway: str, amber: Member
) -> None:
    async with running_pulse(), node_socket(gateway, amber.token) as socket:
        await begin()
        refused = await socket.hear()
        assert isinstance(refused, Refused)
        assert refused.code == ErrorCode.SERVER_MAINTENANCE
        assert refused.message.endswith("new disks")
        assert refused.retry_after is not None
        assert 0 <= refused.retry_after <= models.RETURN.total_seconds()
        assert await socket.close_code() == 1013


async def test_handshake_during_maintenance_gets_503_with_retry_after(
    gateway: str, amber: Member
) -> None:
    headers = {"Authorization": f"Bearer {amber.token}"}
    async with running_pulse():
        async with node_socket(gateway, amber.token) as socket:
            await begin()
            await socket.close_code()
        response = (await denied(f"{gateway}/ws/node/", headers)).response
    assert response.status_code == 503
    assert b"server.maintenance" in response.body
    assert 15 <= int(response.headers["Retry-After"]) <= 30


async def wait_for_silence(condition: Callable[[timedelta | None], bool]) -> timedelta:
    """Wait until the web processes' silence satisfies a condition, and return it."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition(silence := await sync_to_async(heartbeat.web_silence)()):  # noqa: ASYNC110  no event
            await asyncio.sleep(POLL_S)
    assert silence is not None
    return silence


async def test_maintenance_counts_as_an_outage_until_nodes_could_return() -> None:
    now = timezone.now()
    await Maintenance.objects.acreate(starts_at=now - timedelta(hours=1), ends_at=now)
    await async_redis().delete(heartbeat._SERVING)
    async with running_pulse():
        assert await wait_for_silence(lambda silence: silence is not None) >= SILENCE
        await Maintenance.objects.aupdate(ends_at=now - models.RETURN)
        ended = await wait_for_silence(lambda silence: silence is not None and silence < SILENCE)
        assert ended < SILENCE


async def test_client_waits_during_maintenance_and_reconnects_after_it(
    gateway: str, amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swarm_web.gateway.upkeep.RETURN", timedelta(seconds=0.4))
    notebook = Notebook()
    url = f"{gateway}/ws/node/"
    connection = CoordinatorConnection(url=url, token=amber.token, hello=HELLO, listener=notebook)
    async with running_pulse():
        running = asyncio.create_task(connection.run())
        try:
            await connection.connected.wait()
            await begin()
            await notebook.until(
                lambda: sum("new disks" in link.reason for link in notebook.links) >= 3
            )
            assert all(link.planned for link in notebook.links if link.phase == "waiting")
            await sync_to_async(end_maintenance)(now=timezone.now())
            await notebook.until(lambda: len(notebook.welcomes) == 2)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
