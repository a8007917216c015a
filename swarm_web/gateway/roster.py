"""All node connections of a web process.

The roster sends doorbells (messages that nodes did not request), records which nodes are present,
and ensures that a node has only one connection.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec
import redis.exceptions
from channels.db import database_sync_to_async
from django import db
from django.utils import timezone

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import RoundState, SeasonState
from swarm_web.core import bus
from swarm_web.core.event_loops import end_task, one_per_loop
from swarm_web.core.store import async_redis
from swarm_web.core.write_behind import WriteBehind
from swarm_web.gateway.batching import Batcher
from swarm_web.gateway.session import SharedState, shared_state
from swarm_web.gateway.staggering import draw_delays
from swarm_web.nodes.models import Node
from swarm_web.nodes.presence import Departure, find_admitted, record_departures, touch

logger = logging.getLogger(__name__)

# A third of nodes.models.PRESENCE_TIMEOUT.
TOUCH_S = 15.0
# The delay from a node's arrival until other processes end its older connection.
ANNOUNCE_S = 0.02
# The pause after a failed touch: nodes that seem absent when a round opens are not invited to it.
RETRY_S = 2.0
# A socket that has not accepted a message for this long is closed, to free its memory.
STALLED_S = 60.0
# If a socket has not accepted a message for this long, its further messages are read and counted.
UNREAD_S = 1.0
CHECK_S = 1.0
_TOUCH_BATCH = 2_000

_SEASON_PREFIX = f'{{"type":"{SeasonState.__struct_config__.tag}"'
_ROUND_PREFIX = f'{{"type":"{RoundState.__struct_config__.tag}"'
_arrivals = msgspec.json.Decoder(list[tuple[int, int]])


class NodeConnection(Protocol):
    """The part of a node's connection that the roster uses.

    `opened_ns` is the time of opening by the clock of Redis, so that connections to several
    machines can be compared. `sending_since` is the time (`time.monotonic`) at which the frame that
    is being sent was handed to the socket, or 0 if nothing is being sent.
    """

    node: Node
    opened_ns: int
    sending_since: float

    @property
    def greeted(self) -> bool:
        """Whether the node's hello was accepted."""

    def ring(self, payload: str) -> None:
        """Queue a doorbell (an encoded message that the node did not request) for sending."""

    def end(self, code: ErrorCode, message: str) -> None:
        """Start to send the node a refusal that closes the connection; return without waiting."""

    def dismiss(self, refusal: RefusedError) -> None:
        """Tell the node to reconnect later; a message that is being handled is answered first."""

    def read_ahead(self) -> None:
        """Start to read further messages, if a message is still being answered.

        Close the socket if too many messages arrive.
        """

    def drop(self) -> None:
        """Close the socket, because the node does not read."""


class Roster:
    """The connections of one event loop, by node; its length is the number of connected nodes."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._by_node: dict[int, NodeConnection] = {}
        self._arrivals: list[tuple[int, int]] = []
        self._announcing = WriteBehind(self._announce, pause_s=ANNOUNCE_S, name="arrivals")
        self._departures: Batcher[Departure, None] = Batcher(
            database_sync_to_async(record_departures)
        )
        self._touching: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None
        # Includes superseded connections that have not ended.
        self._open: set[NodeConnection] = set()
        self._empty = asyncio.Event()
        self._empty.set()

    async def add(self, connection: NodeConnection) -> None:
        """Add a connection; end an older one of the same node, in this or another process."""
        self._open.add(connection)
        self._empty.clear()
        if self._touching is None:
            await bus.switchboard().listen(bus.NODES, self._ring_all)
            await bus.switchboard().listen(bus.ARRIVALS, self._end_superseded)
            await bus.switchboard().listen(bus.RECHECK_NODE, self._recheck_node)
            self._touching = self._touching or asyncio.create_task(self._touch_loop())
            self._watching = self._watching or asyncio.create_task(self._watch_loop())
        node_id = connection.node.pk
        older = self._by_node.get(node_id)
        self._by_node[node_id] = connection
        if older is not None:
            _supersede(older)
        self._arrivals.append((node_id, connection.opened_ns))
        self._announcing.wake()

    def __len__(self) -> int:
        return len(self._by_node)

    def is_listed(self, connection: NodeConnection) -> bool:
        """Return whether this is the node's current connection in this process."""
        return self._by_node.get(connection.node.pk) is connection

    async def remove(self, connection: NodeConnection, *, goodbye: bool, now: datetime) -> None:
        """Remove a connection; record that the node left, unless a newer connection replaced it.

        `goodbye` is the new value of `Node.said_goodbye`.
        """
        try:
            if self.is_listed(connection):
                del self._by_node[connection.node.pk]
                await self._departures.do(Departure(connection.node.pk, goodbye, now))
        finally:
            self._open.discard(connection)
            if not self._open:
                self._empty.set()

    def dismiss_all(self, code: ErrorCode, message: str, *, spread_s: float) -> None:
        """Tell all nodes to reconnect, at times spread over the next `spread_s` seconds."""
        connections = tuple(self._by_node.values())
        delays = draw_delays(len(connections), spread_s=spread_s, random=self._shared.random)
        for connection, delay_s in zip(connections, delays, strict=True):
            connection.dismiss(RefusedError(code, message, retry_after=round(delay_s, 3)))

    async def wait_until_empty(self) -> None:
        """Wait until all connections have ended and their messages are handled."""
        await self._empty.wait()

    async def _announce(self) -> None:
        """Announce to the other processes which nodes connected, and when."""
        arrivals, self._arrivals = self._arrivals, []
        if not arrivals:
            return
        try:
            await async_redis().publish(bus.ARRIVALS, msgspec.json.encode(arrivals))
        except BaseException:
            self._arrivals = arrivals + self._arrivals
            raise

    async def close(self) -> None:
        """Stop the subscriptions and tasks."""
        bus.switchboard().forget(bus.NODES, self._ring_all)
        bus.switchboard().forget(bus.ARRIVALS, self._end_superseded)
        bus.switchboard().forget(bus.RECHECK_NODE, self._recheck_node)
        for task in (self._touching, self._watching):
            if task is not None:
                await end_task(task)
        self._touching = self._watching = None

    # ---- doorbells

    def _ring_all(self, payload: str) -> None:
        if payload.startswith(_SEASON_PREFIX):
            self._shared.season.drop()
            self._shared.round.drop()
        elif payload.startswith(_ROUND_PREFIX):
            self._shared.round.drop()
        for connection in tuple(self._by_node.values()):
            connection.ring(payload)

    def _end_superseded(self, payload: str) -> None:
        """End this process's connections of nodes that have opened a newer connection.

        `payload` is a message from a process about new connections: JSON pairs of a node's id and
        the connection's `opened_ns`.
        """
        for node_id, opened_ns in _arrivals.decode(payload):
            connection = self._by_node.get(node_id)
            if connection is not None and opened_ns > connection.opened_ns:
                del self._by_node[node_id]
                _supersede(connection)

    def _recheck_node(self, payload: str) -> None:
        connection = self._by_node.get(int(payload))
        if connection is not None:
            task = asyncio.create_task(self._end_unless_admitted([connection]))
            _running.add(task)
            task.add_done_callback(_running.discard)

    async def _end_unless_admitted(self, connections: Sequence[NodeConnection]) -> None:
        nodes = [connection.node for connection in connections]
        owners = await database_sync_to_async(find_admitted)(nodes)
        self._apply_admission(connections, owners)

    # ---- presence

    async def _touch_loop(self) -> None:
        """Every TOUCH_S seconds, record that the nodes whose hello was accepted are present.

        The handler of the hello makes the first such record. The loop also ends connections of
        nodes that are no longer admitted, in case the message that says so (`RECHECK_NODE`) was
        lost.
        """
        pause_s = TOUCH_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = TOUCH_S
            try:
                await self._touch_all()
            except (db.Error, redis.exceptions.RedisError):
                pause_s = RETRY_S
                logger.warning("could not touch the nodes", exc_info=True)

    async def _touch_all(self) -> None:
        greeted = [each for each in self._by_node.values() if each.greeted]
        for first in range(0, len(greeted), _TOUCH_BATCH):
            some = greeted[first : first + _TOUCH_BATCH]
            nodes = [connection.node for connection in some]
            owners = await database_sync_to_async(touch)(nodes, now=timezone.now())
            self._apply_admission(some, owners)

    def _apply_admission(
        self, connections: Sequence[NodeConnection], owners: dict[int, int | None]
    ) -> None:
        """End connections of nodes that are not in `owners`; update the owners of the others.

        `owners` maps the ids of admitted nodes to the ids of their owners.
        """
        for connection in connections:
            if connection.node.pk in owners:
                connection.node.owner_id = owners[connection.node.pk]
            else:
                message = "this token was replaced, or the operator blocked this node"
                connection.end(ErrorCode.AUTH_INVALID, message)

    # ---- sockets that do not read

    async def _watch_loop(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            self._check_unread(now=time.monotonic())

    def _check_unread(self, *, now: float) -> None:
        for connection in tuple(self._open):
            if not connection.sending_since:
                continue
            unread_s = now - connection.sending_since
            if unread_s > STALLED_S:
                connection.drop()
            elif unread_s > UNREAD_S:
                connection.read_ahead()


def _supersede(connection: NodeConnection) -> None:
    connection.end(ErrorCode.AUTH_SUPERSEDED, "a newer connection took over")


# References to background tasks, because the event loop holds only weak ones.
_running: set[asyncio.Task[None]] = set()


@one_per_loop
def roster() -> Roster:
    """Return the running event loop's roster."""
    return Roster(shared_state())
