"""The node socket as an ASGI application.

It runs on uvicorn without a Channels consumer, because a consumer's dispatch costs as much as the
rest of a message. uvicorn pings each socket and closes those that do not answer. It reads no more
from a socket until the last message is handled, unless it is asked to (`inbox`).
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from swarm_protocol.codec import encode
from swarm_protocol.errors import CLOSE_CODES, RETURN_CODES, ErrorCode, RefusedError
from swarm_protocol.messages import Refused, ServerMessage, Welcome
from swarm_web.core import counters
from swarm_web.core.store_clock import store_clock
from swarm_web.gateway.admission import admission
from swarm_web.gateway.answering import answer, note, refuse
from swarm_web.gateway.auth import read_token
from swarm_web.gateway.inbox import Inbox
from swarm_web.gateway.quota import Quota, allowances
from swarm_web.gateway.roster import Roster, roster
from swarm_web.gateway.session import Session, shared_reads
from swarm_web.nodes.models import Node

# How long a socket may stay open without a hello, and the close code after that time.
HELLO_S = 20.0
NO_HELLO = 4408
# All versions of the client close with this code when they stop (RFC 6455, 7.4.1: going away).
GOODBYE = 1001
_CLOSE_CODES = {**CLOSE_CODES, **RETURN_CODES}
# The maximum number of doorbells queued for a slow socket. The newest describes the current state.
_RINGS_KEPT = 16


async def serve_node(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Serve one node's socket; `TokenGate` has authenticated it."""
    shut_out = partial(admission().shut_out, read_token(scope))  # type: ignore[arg-type]
    node = scope["node"]  # type: ignore[typeddict-item]
    await Connection(node, roster(), receive, send, shut_out=shut_out).serve()


class Connection:
    """One node's connection.

    Messages are handled one after another, so a slow handler delays only its own node. `shut_out`
    refuses the node for a while, and returns for how many seconds.
    """

    def __init__(
        self,
        node: Node,
        listed_in: Roster,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        *,
        shut_out: Callable[[], float],
    ) -> None:
        self.node = node
        self.session = Session(node, shared_reads())
        self.opened_ns = store_clock().now_ns()
        self.sending_since = 0.0
        self._roster = listed_in
        self._inbox = Inbox(receive)
        self._send = send
        self._quota = Quota(node, allowances())
        self._shut_out = shut_out
        self._dismissal: RefusedError | None = None
        # Doorbells to send after the welcome; the oldest are dropped if the socket is too slow.
        self._rings: list[str] = []
        self._forwarding: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[Any] | None = None
        self._hello_deadline: asyncio.TimerHandle | None = None
        self._closed = self._answering = self._welcomed = False

    @property
    def greeted(self) -> bool:
        """Whether the node's hello was accepted."""
        return self.session.greeted

    async def serve(self) -> None:
        """Serve the connection, and clean up when it ends for any reason."""
        await self._inbox.take()
        await self._send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        counters.count(counters.CONNECTIONS, "accepted")
        self._serving = asyncio.current_task()
        self._await_hello()
        code = None
        try:
            await self._roster.enter(self)
            while (event := await self._inbox.take())["type"] == "websocket.receive":
                await self._handle(event)
                if self._serving is None:
                    # `_drop` cancelled a call that lost the cancellation (`core.event_loops`).
                    raise asyncio.CancelledError
            code = event.get("code")
        finally:
            await self._hang_up(said_goodbye=code == GOODBYE)

    async def _handle(self, event: Any) -> None:
        """Answer one frame, unless the connection was closed; then ignore it."""
        if self._closed:
            return
        frame = event.get("text")
        if frame is None:
            frame = event.get("bytes") or b""
        wait = self._quota.take(len(frame))
        if not self._welcomed:
            # The welcome contains everything announced so far; later doorbells are sent after it.
            self._rings.clear()
        # Until the reply is sent: a node that is dismissed during this time gets the reply first.
        self._answering = True
        reply = await answer(self.session, frame, wait=wait)
        await self._say(reply)
        self._answering = False
        if wait.seconds and self._quota.floods:
            why = "too many messages, and refusals are not heeded"
            out_s = self._shut_out()
            self._dismissal = RefusedError(ErrorCode.RATE_FLOOD, why, retry_after=out_s)
            note(self.session, self._dismissal)
        if self._dismissal is not None:
            await self._say(refuse(self._dismissal, reply_to=None))
        elif isinstance(reply, Welcome):
            self._welcomed = True
            self._forward()

    async def _say(self, message: ServerMessage) -> None:
        """Send a message, and close the connection if it is a refusal that ends it."""
        close_code = _CLOSE_CODES.get(message.code) if isinstance(message, Refused) else None
        await self._send_text(encode(message), last=close_code is not None)
        if close_code is not None:
            await self._close(close_code)

    async def _close(self, code: int, reason: str | None = None) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _send_text(self, frame: str, *, last: bool = False) -> None:
        """Send a frame, unless another task has closed the connection."""
        if self._closed:
            return
        self._closed = last
        self.sending_since = time.monotonic()
        await self._send({"type": "websocket.send", "bytes": None, "text": frame})
        self.sending_since = 0.0

    # ---- the hello

    def _await_hello(self) -> None:
        """Close the connection if it sends no hello; until then it does not count as present."""
        loop = asyncio.get_running_loop()
        self._hello_deadline = loop.call_later(HELLO_S, self._end_without_hello)

    def _end_without_hello(self) -> None:
        if self._answering:
            # The hello is being answered, which takes a while if thousands of nodes reconnect.
            self._await_hello()
        elif not self.session.greeted and not self._closed:
            self._closed = True
            why = f"no hello within {HELLO_S:g} s"
            self._ending = asyncio.create_task(self._close(NO_HELLO, why))

    # ---- called by the roster

    def ring(self, payload: str) -> None:
        """Send a doorbell after the welcome; the oldest is dropped if the socket is slow."""
        if len(self._rings) == _RINGS_KEPT:
            del self._rings[0]
            counters.count(counters.DOORBELLS, "dropped")
        self._rings.append(payload)
        if self._welcomed:
            self._forward()

    def _forward(self) -> None:
        if self._rings and self._forwarding is None:
            self._forwarding = asyncio.create_task(self._send_rings())

    async def _send_rings(self) -> None:
        while self._rings:
            await self._send_text(self._rings.pop(0))
        self._forwarding = None

    def end(self, code: ErrorCode, message: str) -> None:
        """Refuse the node, and close the connection."""
        # Before the connection is closed: the one that replaces it may ask for the rollouts that
        # the node was given.
        self.session.leave_pool()
        if self._ending is None and not self._closed:
            refusal = refuse(RefusedError(code, message), reply_to=None)
            self._ending = asyncio.create_task(self._say(refusal))

    def dismiss(self, refusal: RefusedError) -> None:
        """Tell the node to reconnect later; a message that is being handled is answered first."""
        if self._ending is not None or self._dismissal is not None:
            return
        self._dismissal = refusal
        if not self._answering:
            self._ending = asyncio.create_task(self._leave(refusal))

    async def _leave(self, refusal: RefusedError) -> None:
        # If a frame arrived before this task started, `_handle` sends the refusal after its reply.
        if not self._answering and not self._closed:
            await self._say(refuse(refusal, reply_to=None))

    def read_on(self) -> None:
        """Check whether the node keeps sending while it does not read the reply."""
        if self._answering:
            self._inbox.read_on(self._drop_unheeding)

    def drop(self) -> None:
        """Close a socket whose node does not read."""
        self._drop("stalled")

    def _drop_unheeding(self) -> None:
        """Close a socket whose node sends without reading, which no client does."""
        why = "too many messages, and replies are not read"
        note(self.session, RefusedError(ErrorCode.RATE_FLOOD, why))
        self._drop("unread")

    def _drop(self, why: str) -> None:
        # Only once: a second cancellation would interrupt the cleanup.
        serving, self._serving = self._serving, None
        if serving is not None:
            counters.count(counters.CONNECTIONS, why)
            serving.cancel()

    # ---- the end

    async def _hang_up(self, *, said_goodbye: bool) -> None:
        """Stop the connection's tasks, and record that the node left."""
        self._closed = True
        if self._hello_deadline is not None:
            self._hello_deadline.cancel()
        tasks = [task for task in (self._forwarding, self._ending) if task is not None]
        for task in tasks:
            task.cancel()
        await self._inbox.stop()
        # A task may have failed because the socket was closed, which needs no handling.
        await asyncio.gather(*tasks, return_exceptions=True)
        self.session.leave_pool()
        # A connection without a hello, such as a test of the token, does not end a run.
        goodbye = said_goodbye if self.session.greeted else self.node.said_goodbye
        await self._roster.remove(self, goodbye=goodbye, now=self.session.clock())
