"""Transport: unread sockets are closed, where uvicorn alone would keep them open."""

import asyncio
import socket

import pytest
import uvicorn
from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from swarm_web.gateway import transport
from tests.sockets import PATIENCE_S

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: site\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
# More than fits into the buffers between two local sockets.
FRAMES, FRAME_BYTES = 40, 1 << 20


@pytest.mark.slow
async def test_unread_socket_is_closed_soon_after_it_was_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "UNTAKEN_MS", 200)
    blocked = asyncio.Event()

    async def send_until_blocked(
        scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        for _ in range(FRAMES):
            frame = asyncio.ensure_future(
                send({"type": "websocket.send", "bytes": None, "text": "x" * FRAME_BYTES})
            )
            done, _ = await asyncio.wait([frame], timeout=0.05)
            if not done:
                frame.cancel()
                blocked.set()
                return

    config = uvicorn.Config(
        send_until_blocked,
        ws="swarm_web.gateway.transport:NodeTransport",
        lifespan="off",
        log_config=None,
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as reader:
        await server.startup(sockets=[listener])
        await asyncio.to_thread(reader.connect, listener.getsockname())
        reader.sendall(HANDSHAKE)
        async with asyncio.timeout(PATIENCE_S):
            await blocked.wait()
            while server.server_state.connections:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)
        for listening in server.servers:
            listening.close()
