"""A proxy in front of Redis that a test can close and open."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from urllib.parse import urlsplit

import redis.asyncio
from django.conf import settings
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff


class Gate:
    """Forwards connections to Redis while it is open."""

    def __init__(self) -> None:
        self._is_open = True
        self._loses_replies = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    def shut(self) -> None:
        """Abort all connections and refuse new ones, as a lost server does."""
        self._is_open = False
        for writer in self._writers:
            writer.transport.abort()

    def lose_replies(self) -> None:
        """Abort each connection when Redis replies, before the reply is forwarded."""
        self._loses_replies = True

    def open(self) -> None:
        """Accept connections again."""
        self._is_open = True
        self._loses_replies = False

    async def ended(self) -> None:
        """Wait until all connections are closed."""
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection."""
        if not self._is_open:
            writer.transport.abort()
            return
        address = urlsplit(settings.REDIS_URL)
        far_reader, far_writer = await asyncio.open_connection(address.hostname, address.port)
        self._writers |= {writer, far_writer}
        if (task := asyncio.current_task()) is not None:
            self._serving.add(task)
        await asyncio.gather(
            _copy(reader, far_writer, is_cut=lambda: False),
            _copy(far_reader, writer, is_cut=lambda: self._loses_replies),
        )
        self._writers -= {writer, far_writer}


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_cut: Callable[[], bool]
) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            if is_cut():
                break
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.asynccontextmanager
async def gated_redis() -> AsyncIterator[tuple[Gate, redis.asyncio.Redis]]:
    """Yield a gate and a Redis client that connects through it."""
    gate = Gate()
    server = await asyncio.start_server(gate.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    path = urlsplit(settings.REDIS_URL).path.strip("/") or "0"
    client = redis.asyncio.Redis(
        host="127.0.0.1",
        port=port,
        db=int(path),
        password=urlsplit(settings.REDIS_URL).password,
        retry=Retry(NoBackoff(), 0),
    )
    async with server:
        yield gate, client
        await client.aclose()
        gate.shut()
        await gate.ended()
