"""Measure live updates: two thousand browsers watch the leaderboard while a score changes."""

import asyncio
import time
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

from bench.web.site import BenchServer
from judge.models import Season, Standing, Window
from swarm_web.core import bus
from swarm_web.local.probes import HOST

BROWSERS = 2_000
_UPDATES = 6
_MAX_CONNECTING = 50
_QUIET_S = 3.0


@dataclass(frozen=True)
class UpdateDelay:
    """Seconds from a score's change until all browsers have it, and the server's CPU seconds."""

    delay_s: float
    cpu_s: float


async def measure_updates(server: BenchServer) -> list[UpdateDelay]:
    """Connect BROWSERS browsers; return the delay of each of six changes of the leader's score."""
    gate = asyncio.Semaphore(_MAX_CONNECTING)
    site = f"{HOST}:{server.port}"

    async def open_socket() -> ClientConnection:
        async with gate:
            socket = await connect(
                f"ws://{site}/ws/live/",
                origin=Origin(f"http://{site}"),
                max_size=None,
                ping_interval=None,
            )
            await socket.recv()
            return socket

    sockets = await asyncio.gather(*(open_socket() for _ in range(BROWSERS)))
    delays = [await _measure_update(server, sockets) for _ in range(_UPDATES)]
    for socket in sockets:
        # Without a closing handshake, because two thousand of them would take longer than the rest.
        socket.transport.abort()
    return delays


async def _measure_update(server: BenchServer, sockets: list[ClientConnection]) -> UpdateDelay:
    await asyncio.sleep(_QUIET_S)
    waiting = [asyncio.create_task(_await_change(socket)) for socket in sockets]
    await asyncio.sleep(0)
    cpu, start = server.cpu_s(), time.perf_counter()
    await sync_to_async(_lower_leader)()
    await asyncio.gather(*waiting)
    return UpdateDelay(time.perf_counter() - start, server.cpu_s() - cpu)


async def _await_change(socket: ClientConnection) -> None:
    """Read messages until one contains changed rows."""
    while True:
        # The JSON is not decoded: two thousand machines would share that work.
        if '"rows":{"' in str(await socket.recv()):
            return


def _lower_leader() -> None:
    """Lower the score of the season's leader, and announce this as `refresh_standings` does.

    The leader keeps its place.
    """
    season = Season.objects.get(state=Season.State.RUNNING)
    standings = Standing.objects.filter(season=season, window=Window.SEASON, rank_low=1)
    leader = standings.order_by("rank_high", "-score", "node_id").first()
    assert leader is not None
    Standing.objects.filter(pk=leader.pk).update(
        score=leader.score - 0.001, correct=leader.correct - 1
    )
    bus.ring(bus.VIEWERS)
