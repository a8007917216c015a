"""Copies accepted rollouts between the web processes of a site.

Each process appends its accepted rollouts to its own stream, and reads only the streams of the
others. Rollouts may be lost: while Redis is down, each process hands out only the rollouts that it
already holds, and entries that it could not write are not written later.

All times in Redis are by the clock of the Redis server, because the clocks of machines differ and
the times decide which of two equal rollouts was published first. Times given by nodes are not used.

Keys of season `s`, all in one slot of a cluster and with an expiry:
    relay:{s}:processes        sorted set of the processes, scored by Unix seconds of the last write
    relay:{s}:stream:<process> stream of batches of entries
"""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import redis.asyncio

from swarm_web.relay.keys import season_key
from swarm_web.relay.window import Bounds, Entry

logger = logging.getLogger(__name__)

_FIELD = b"e"
# The bodies of a batch have at most this many bytes together, unless one body alone has more.
_BATCH_BYTES = 1 << 18
# The number of batches of each stream in one read; the rest is read right after.
_READ_BATCHES = 16

# Smaller differences of clocks are ignored: no node copies a rollout within a millisecond.
_SAME_TIME_S = 0.001

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Entry])


class _Written(NamedTuple):
    batch_id: bytes
    bytes: int
    entries: int
    at: float


class Replica:
    """The stream of this process in a season, and its positions in the streams of the others.

    The process's stream in Redis is limited to what a pool window with the limits `bounds` can
    hold. `ahead_s` returns how many seconds the clock of Redis is ahead of the clock of this
    process.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        *,
        season_id: int,
        process: str,
        bounds: Bounds,
        ahead_s: Callable[[], float],
    ) -> None:
        self._client = client
        self._process = process
        self._bounds = bounds
        self._max_age_s = int(bounds.max_age_s)
        self._ahead_s = ahead_s
        self._processes_key = season_key(season_id, "processes")
        self._own_stream = season_key(season_id, f"stream:{process}")
        self._streams = season_key(season_id, "stream:").encode()
        self._written: deque[_Written] = deque()
        self._written_bytes = self._written_entries = 0
        self._positions: dict[bytes, bytes] = {}

    async def write(self, entries: Sequence[Entry], *, now: float) -> None:
        """Append entries to the process's stream, and trim old or excess entries.

        Raises the errors of the Redis client; the entries may then be missing in the stream.
        """
        # First: a full Redis accepts no write until space is freed.
        await self._trim(now=now)
        ahead_s = self._ahead_s()
        batches = list(_pack(_shift(entries, by=ahead_s)))
        async with self._client.pipeline(transaction=False) as pipeline:
            for batch, _ in batches:
                pipeline.xadd(self._own_stream, {_FIELD: batch})
            pipeline.zadd(self._processes_key, {self._process: now + ahead_s})
            oldest = now + ahead_s - self._max_age_s
            pipeline.zremrangebyscore(self._processes_key, "-inf", oldest)
            for key in (self._own_stream, self._processes_key):
                pipeline.expire(key, self._max_age_s)
            replies: list[Any] = await pipeline.execute()
        for batch_id, (batch, count) in zip(replies, batches, strict=False):
            self._written.append(_Written(batch_id, len(batch), count, now))
            self._written_bytes += len(batch)
            self._written_entries += count
        await self._trim(now=now)

    async def _trim(self, *, now: float) -> None:
        """Drop the oldest batches of this process's stream if they are too old or over a bound."""
        trimmed = False
        while self._written and (
            self._written_bytes > self._bounds.body_bytes
            # The remaining batches alone reach the limit.
            or self._written_entries - self._written[0].entries >= self._bounds.size
            or now - self._written[0].at > self._max_age_s
        ):
            first = self._written.popleft()
            self._written_bytes -= first.bytes
            self._written_entries -= first.entries
            trimmed = True
        if trimmed and self._written:
            await self._client.xtrim(self._own_stream, minid=self._written[0].batch_id)
        elif trimmed:
            await self._client.delete(self._own_stream)

    async def read(self, *, now: float) -> list[Entry]:
        """Return the entries that other processes have written since the last call, oldest first.

        The first call returns all entries in their streams. The entries' times are converted to the
        clock of this process. Raises the errors of the Redis client; the next call then returns the
        same entries.
        """
        ahead_s = self._ahead_s()
        since = now + ahead_s - self._max_age_s
        processes: Any = await self._client.zrangebyscore(self._processes_key, since, "+inf")
        keys = {self._streams + each for each in processes}
        others = keys - {self._own_stream.encode()}
        # Positions are kept only if all is read: a failure in between loses nothing.
        positions = {key: self._positions.get(key, b"0") for key in others}
        waiting: dict[Any, Any] = dict(positions)
        entries: list[Entry] = []
        while waiting:
            streams = _read_streams(await self._client.xread(waiting, count=_READ_BATCHES))
            for key, batches in streams.items():
                positions[key] = batches[-1][0]
                for _, fields in batches:
                    entries += _unpack(fields)
            waiting = {
                key: positions[key]
                for key, batches in streams.items()
                if len(batches) == _READ_BATCHES
            }
        self._positions = positions
        return sorted(_shift(entries, by=-ahead_s), key=lambda entry: entry.at)

    def reset(self) -> None:
        """Let the next `read` begin at the start of the streams.

        Call this if Redis may have lost the streams: the stored positions are then wrong.
        """
        self._positions.clear()


def _shift(entries: Sequence[Entry], *, by: float) -> Sequence[Entry]:
    """Return the entries with `by` seconds added to their times."""
    if abs(by) < _SAME_TIME_S:
        return entries
    return [replace(entry, at=entry.at + by) for entry in entries]


def _pack(entries: Sequence[Entry]) -> list[tuple[bytes, int]]:
    """Encode entries as batches of bounded size; return each with its number of entries."""
    batches: list[tuple[bytes, int]] = []
    waiting: list[Entry] = []
    size = 0
    for entry in entries:
        if waiting and size + len(entry.body) > _BATCH_BYTES:
            batches.append((_encoder.encode(waiting), len(waiting)))
            waiting, size = [], 0
        waiting.append(entry)
        size += len(entry.body)
    if waiting:
        batches.append((_encoder.encode(waiting), len(waiting)))
    return batches


def _unpack(fields: dict[bytes, bytes]) -> list[Entry]:
    """Return a batch's entries, or [] if it is unreadable.

    A batch of another version of the site may be unreadable.
    """
    try:
        return _decoder.decode(fields[_FIELD])
    except (KeyError, msgspec.DecodeError):
        logger.warning("ignored unreadable rollouts of another process", exc_info=True)
        return []


def _read_streams(reply: Any) -> dict[bytes, list[tuple[bytes, dict[bytes, bytes]]]]:
    """Return the batches of XREAD's reply by stream; the reply is a list (RESP2) or map (RESP3)."""
    if isinstance(reply, dict):
        return {key: batches for key, [batches] in reply.items()}
    return dict(reply or [])
