"""The node socket: frames in and out, doorbells, presence, and one connection a node."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django import db
from django.conf import settings

from swarm_protocol.codec import encode
from swarm_protocol.errors import CLOSE_CODES, ErrorCode, RefusedError
from swarm_protocol.messages import Refused, SeasonState, ServerMessage, Welcome
from swarm_web import bus, counters
from swarm_web.gateway.answering import answer, refuse
from swarm_web.gateway.limits import TokenBucket
from swarm_web.gateway.mailbox import Mailbox
from swarm_web.gateway.session import Session, shared_reads
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import leave, may_stay, touch

logger = logging.getLogger(__name__)

# A third of nodes.models.PRESENCE.
TOUCH_S = 15.0
# After a touch that failed: who looks away when the next round opens is not invited to it.
RETRY_S = 2.0
# How long a socket may stay open without a hello, and the close code then.
HELLO_S = 20.0
NO_HELLO = 4408
# With this code a client says goodbye (RFC 6455, 7.4.1: going away). All versions of it do.
GOODBYE = 1001

_SEASON_RING = f'{{"type":"{SeasonState.__struct_config__.tag}"'


class NodeConsumer(AsyncWebsocketConsumer):
    """One node's connection; `TokenGate` has authenticated it.

    Messages are handled one after another, so a slow handler holds back its own node only.
    """

    async def __call__(
        self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        """Serve the connection, and clean up however it ends."""
        self.node: Node = scope["node"]  # type: ignore[typeddict-item]  # TokenGate put it there.
        self.session = Session(self.node, shared_reads())
        self.opened_ns = time.time_ns()
        self.mailbox = Mailbox()
        self.bucket = TokenBucket(
            rate=settings.GATEWAY_MESSAGES_PER_SECOND,
            burst=settings.GATEWAY_BURST,
            now=time.monotonic(),
        )
        self.sending = asyncio.Lock()
        self.answering = asyncio.Lock()
        self.background: list[asyncio.Task[None]] = []
        self.accepted = self.superseded = self.closed = self.said_goodbye = False
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._hang_up()

    async def connect(self) -> None:
        """Accept the node, listen for doorbells, and replace its older connection."""
        await self.accept()
        self.accepted = True
        await counters.count(counters.CONNECTIONS, "accepted")
        await bus.switchboard().listen(bus.NODES, self._on_ring)
        await bus.switchboard().listen(bus.node_topic(self.node.pk), self._on_own_ring)
        await database_sync_to_async(bus.ring)(bus.node_topic(self.node.pk), str(self.opened_ns))
        self._start(self._await_hello())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer one frame; what still arrives after a fatal refusal is not read."""
        async with self.answering:
            await self._answer(text_data, bytes_data)

    async def _answer(self, text_data: str | None, bytes_data: bytes | None) -> None:
        if self.closed:
            return
        wait_s = self.bucket.take(now=time.monotonic())
        frame = bytes_data or b"" if text_data is None else text_data
        if not self.session.greeted:
            # A welcome tells what was announced until now; what comes later is kept for after it.
            self.mailbox = Mailbox()
        reply = await answer(self.session, frame, wait_s=wait_s)
        await self._say(reply)
        if isinstance(reply, Welcome):
            self._start(self._forward_rings())
            self._start(self._stay_present())

    async def disconnect(self, code: int) -> None:
        """Note whether the client said goodbye, which a broken connection does not."""
        self.said_goodbye = code == GOODBYE

    async def _say(self, message: ServerMessage) -> None:
        """Send a message; after a fatal refusal close the connection."""
        close_code = CLOSE_CODES.get(message.code) if isinstance(message, Refused) else None
        await self._send_frame(encode(message), close_code=close_code)

    async def _send_frame(self, frame: str, *, close_code: int | None = None) -> None:
        """Send a frame, unless the connection was closed by another task meanwhile."""
        async with self.sending:
            if self.closed:
                return
            self.closed = close_code is not None
            await self.send(text_data=frame)
            if close_code is not None:
                await self.close(code=close_code)

    async def _await_hello(self) -> None:
        """Close the connection if it says no hello: nobody counts it as present meanwhile."""
        await asyncio.sleep(HELLO_S)
        # A hello that is being answered was said: when thousands come back, that takes its time.
        async with self.answering, self.sending:
            if not self.session.greeted and not self.closed:
                self.closed = True
                await self.close(code=NO_HELLO, reason=f"no hello within {HELLO_S:g} s")

    # ---- doorbells

    def _on_ring(self, payload: str) -> None:
        """Put a doorbell into the mailbox, from which it is sent after the welcome."""
        if payload.startswith(_SEASON_RING):
            self.session.shared.season.drop()
        self.mailbox.put(payload)

    async def _forward_rings(self) -> None:
        """Send what comes into the mailbox; begun when the welcome was sent, so all follows it."""
        while True:
            await self._send_frame(await self.mailbox.take())
            if dropped := self.mailbox.collect_dropped():
                await counters.count(counters.DOORBELLS, "dropped", by=dropped)

    # ---- one connection a node, with a valid token

    def _on_own_ring(self, payload: str) -> None:
        """Give way to a connection of the node that was opened later, and to the operator."""
        if payload == bus.LOOK_AGAIN:
            self._start(self._end_unless_valid())
        elif int(payload) > self.opened_ns and not self.superseded:
            self.superseded = True
            self._start(self._end(ErrorCode.AUTH_SUPERSEDED, "a newer connection took over"))

    async def _end_unless_valid(self) -> None:
        if not await database_sync_to_async(may_stay)(self.node):
            await self._show_out()

    async def _show_out(self) -> None:
        why = "this token was replaced, or the operator blocked this node"
        await self._end(ErrorCode.AUTH_INVALID, why)

    async def _end(self, code: ErrorCode, message: str) -> None:
        await self._say(await refuse(RefusedError(code, message), reply_to=None))

    # ---- presence

    async def _stay_present(self) -> None:
        """Touch the node for as long as the socket is open and the node is allowed in.

        The hello was its first touch. It is also found here that it is not allowed in any more, if
        the ring that says so was lost.
        """
        pause_s = TOUCH_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = TOUCH_S
            try:
                if not await database_sync_to_async(touch)(self.node, now=self.session.clock()):
                    await self._show_out()
                    return
            except db.Error:
                pause_s = RETRY_S
                logger.warning("could not touch node %s", self.node, exc_info=True)

    # ---- the end

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the messages, until the connection ends."""
        self.background.append(asyncio.create_task(work))

    async def _hang_up(self) -> None:
        """Stop listening and working, and note that the node left unless it is here anew."""
        bus.switchboard().forget(bus.NODES, self._on_ring)
        bus.switchboard().forget(bus.node_topic(self.node.pk), self._on_own_ring)
        for task in self.background:
            task.cancel()
        # A task may have failed because the socket was gone; that is no news any more.
        await asyncio.gather(*self.background, return_exceptions=True)
        if self.accepted and not self.superseded:
            # A connection without a hello, such as a test of the token, is no end of a run.
            goodbye = self.said_goodbye if self.session.greeted else self.node.said_goodbye
            await database_sync_to_async(leave)(
                self.node.pk, goodbye=goodbye, now=self.session.clock()
            )
