"""A minimal relay for comparison: a ring of rollouts in Valkey behind a bare ASGI websocket.

It has no tokens or seasons, checks nothing, counts nothing and may return a node's own rollouts.
`bench.relay` compares the site with it.
"""

import os
import random
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio

_SLOTS = 4096
_KEY = "bare"


class _Request(msgspec.Struct):
    """The fields of a message that the bare relay reads; rollouts are not decoded."""

    type: str
    id: str
    rollouts: list[msgspec.Raw] = []


_decoder = msgspec.json.Decoder(_Request)
_welcome = Path(os.environ["BARE_WELCOME"]).read_text()
_redis: redis.asyncio.Redis | None = None


def _store() -> redis.asyncio.Redis:
    global _redis
    if _redis is None:
        pool = redis.asyncio.BlockingConnectionPool.from_url(
            os.environ["REDIS_URL"], max_connections=16, timeout=None
        )
        _redis = redis.asyncio.Redis(connection_pool=pool)
    return _redis


async def application(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Serve one node's websocket until it closes; this is the ASGI application."""
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": await _answer(event["text"])})


async def _answer(frame: str) -> str:
    request = _decoder.decode(frame)
    head = f'"reply_to":"{request.id}"'
    if request.type == "hello":
        return _welcome
    if request.type == "rollouts.publish":
        await _put(request.rollouts)
        taken = len(request.rollouts)
        return f'{{"type":"rollouts.published",{head},"accepted":{taken},"rejected":[]}}'
    if request.type == "rollouts.request":
        return f'{{"type":"rollouts.sampled",{head},"rollouts":[{await _draw(8)}]}}'
    return f'{{"type":"training.reported",{head}}}'


async def _put(rollouts: list[msgspec.Raw]) -> None:
    store = _store()
    last = await store.incrby(_KEY, len(rollouts))
    await store.mset(
        {f"{_KEY}:{(last - i) % _SLOTS}": bytes(raw) for i, raw in enumerate(rollouts)}
    )


async def _draw(count: int) -> str:
    slots = random.sample(range(_SLOTS), count * 2)
    blobs: list[Any] = await _store().mget([f"{_KEY}:{slot}" for slot in slots])
    found = [blob.decode() for blob in blobs if blob is not None][:count]
    return ",".join(f'{{"node":"bare","age_s":0.0,"rollout":{blob}}}' for blob in found)
