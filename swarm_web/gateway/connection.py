"""The node socket as an ASGI application.

It runs on uvicorn without a Channels consumer, because a consumer would double the time that a
message takes. uvicorn pings each socket and closes sockets that do not answer. uvicorn stops
reading a socket while a message from it waits for this application, which usually asks for the next
message after it has answered the previous one (`inbox`).
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
from swarm_web.gateway.answering import answer, record_node_refusal, refuse
from swarm_web.gateway.auth import read_token
from swarm_web.gateway.inbox import Inbox, size_of
from swarm_web.gateway.quota import Quota, allowances
from swarm_web.gateway.roster import Roster, roster
from swarm_web.gateway.session import Session, shared_state
from swarm_web.nodes.models import Node

# How long a socket may stay open without a hello, and the close code after that time.
HELLO_TIMEOUT_S = 20.0
NO_HELLO = 4408
# All versions of the client close with this code when they stop (RFC 6455, 7.4.1: going away).
GOODBYE = 1001
_CLOSE_CODES = {**CLOSE_CODES, **RETURN_CODES}
# The maximum number of doorbells queued for a slow socket. The newest describes the current state.
_MAX_DOORBELLS = 16


async def serve_node(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """Serve one node's socket; `TokenGate` has authenticated it."""
    suspend = partial(admission().suspend, read_token(scope))  # type: ignore[arg-type]
    node = scope["node"]  # type: ignore[typeddict-item]
    await Connection(node, roster(), receive, send, suspend=suspend).serve()


class Connection:
    """One node's connection.

    Messages are handled one after another, so a slow handler delays only its own node. `suspend` is
    called if the node floods the site: it must refuse the node's handshakes for a while, and return
    for how many seconds.
    """

    def __init__(
        self,
        node: Node,
        roster: Roster,
        receive: ASGIReceiveCallable,
        send: ASGISendCallable,
        *,
        suspend: Callable[[], float],
    ) -> None:
        self.node = node
        self.session = Session(node, shared_state())
        self.opened_ns = store_clock().now_ns()
        self.sending_since = 0.0
        self._roster = roster
        self._inbox = Inbox(receive)
        self._send = send
        self._quota = Quota(node, allowances())
        self._suspend = suspend
        self._dismissal: RefusedError | None = None
        # Doorbells to send after the welcome; the oldest are dropped if the socket is too slow.
        self._doorbells: list[str] = []
        self._sending: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._serving: asyncio.Task[Any] | None = None
        self._hello_deadline: asyncio.TimerHandle | None = None
        self._closed = self._answering = self._welcomed = False

    @property
    def greeted(self) -> bool:
        """Whether the node's hello was accepted."""
        return self.session.greeted

    async def serve(self) -> None:
        """Accept the socket and answer its messages until it is closed.

        At the end, also after an error, stop the connection's tasks and record that the node left.
        """
        await self._inbox.take()
        await self._send({"type": "websocket.accept", "subprotocol": None, "headers": []})
        counters.count(counters.CONNECTIONS, "accepted")
        self._serving = asyncio.current_task()
        self._await_hello()
        code = None
        try:
            await self._roster.add(self)
            while (event := await self._inbox.take())["type"] == "websocket.receive":
                await self._handle(event)
                if self._serving is None:
                    # `_drop` cancelled a call that lost the cancellation (`core.event_loops`).
                    raise asyncio.CancelledError
            code = event.get("code")
        finally:
            await self._clean_up(said_goodbye=code == GOODBYE)

    async def _handle(self, event: Any) -> None:
        """Answer one frame, and suspend the node if it floods the site.

        Frames that arrive after the connection was closed are ignored.
        """
        if self._closed:
            return
        frame = event.get("text")
        if frame is None:
            frame = event.get("bytes") or b""
        wait = self._quota.take(size_of(event))
        if not self._welcomed:
            # The welcome contains everything announced so far; later doorbells are sent after it.
            self._doorbells.clear()
        # Until the reply is sent: a node that is dismissed during this time gets the reply first.
        self._answering = True
        reply = await answer(self.session, frame, wait=wait)
        await self._send_message(reply)
        self._answering = False
        if wait.seconds and self._quota.is_flooding:
            reason = "too many messages, and refusals are not heeded"
            wait_s = self._suspend()
            self._dismissal = RefusedError(ErrorCode.RATE_FLOOD, reason, retry_after=wait_s)
            record_node_refusal(self.session, self._dismissal)
        if self._dismissal is not None:
            await self._send_message(refuse(self._dismissal, reply_to=None))
        elif isinstance(reply, Welcome):
            self._welcomed = True
            self._schedule_doorbells()

    async def _send_message(self, message: ServerMessage) -> None:
        """Send a message; if it is a refusal that ends the connection, close the connection.

        Does nothing if the connection is closed already: a server accepts only one close.
        """
        if self._closed:
            return
        close_code = _CLOSE_CODES.get(message.code) if isinstance(message, Refused) else None
        await self._send_frame(encode(message), last=close_code is not None)
        if close_code is not None:
            await self._close(close_code)

    async def _close(self, code: int, reason: str | None = None) -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})

    async def _send_frame(self, frame: str, *, last: bool = False) -> None:
        """Send a frame unless the connection is closed. With `last`, no later frame is sent."""
        if self._closed:
            return
        self._closed = last
        self.sending_since = time.monotonic()
        await self._send({"type": "websocket.send", "bytes": None, "text": frame})
        self.sending_since = 0.0

    # ---- the hello

    def _await_hello(self) -> None:
        """Start the timer that closes the connection if no hello is accepted in HELLO_TIMEOUT_S.

        If a message is being answered when the time is over, the timer starts again.
        """
        loop = asyncio.get_running_loop()
        self._hello_deadline = loop.call_later(HELLO_TIMEOUT_S, self._end_without_hello)

    def _end_without_hello(self) -> None:
        if self._answering:
            # The hello is being answered, which takes a while if thousands of nodes reconnect.
            self._await_hello()
        elif not self.session.greeted and not self._closed:
            self._closed = True
            reason = f"no hello within {HELLO_TIMEOUT_S:g} s"
            self._ending = asyncio.create_task(self._close(NO_HELLO, reason))

    # ---- called by the roster

    def ring(self, payload: str) -> None:
        """Send a doorbell soon, but not before the welcome (the reply to the node's hello).

        A doorbell that rings before the node's hello is dropped. The welcome contains its news.
        If _MAX_DOORBELLS are already waiting, the oldest is dropped.
        """
        if len(self._doorbells) == _MAX_DOORBELLS:
            del self._doorbells[0]
            counters.count(counters.DOORBELLS, "dropped")
        self._doorbells.append(payload)
        if self._welcomed:
            self._schedule_doorbells()

    def _schedule_doorbells(self) -> None:
        if self._doorbells and self._sending is None:
            self._sending = asyncio.create_task(self._send_doorbells())

    async def _send_doorbells(self) -> None:
        while self._doorbells:
            await self._send_frame(self._doorbells.pop(0))
        self._sending = None

    def end(self, code: ErrorCode, message: str) -> None:
        """Leave the relay's pool, and start to send the node a refusal that ends the connection."""
        # Before the connection is closed: the one that replaces it may ask for the rollouts that
        # the node was given.
        self.session.leave_pool()
        if self._ending is None and not self._closed:
            refusal = refuse(RefusedError(code, message), reply_to=None)
            self._ending = asyncio.create_task(self._send_message(refusal))

    def dismiss(self, refusal: RefusedError) -> None:
        """Tell the node to reconnect later; a message that is being handled is answered first."""
        if self._ending is not None or self._dismissal is not None:
            return
        self._dismissal = refusal
        if not self._answering:
            self._ending = asyncio.create_task(self._send_dismissal(refusal))

    async def _send_dismissal(self, refusal: RefusedError) -> None:
        # If a frame arrived before this task started, `_handle` sends the refusal after its reply.
        if not self._answering and not self._closed:
            await self._send_message(refuse(refusal, reply_to=None))

    def read_ahead(self) -> None:
        """If a message is still being answered, start to read the messages after it.

        If more than `inbox.MAX_AHEAD` messages wait, the socket is closed, because the node sends
        without reading replies.
        """
        if self._answering and not self._closed:
            self._inbox.read_ahead(self._drop_unread)

    def drop(self) -> None:
        """Close the socket, because the node does not read."""
        self._drop("stalled")

    def _drop_unread(self) -> None:
        """Close the socket, because the node reads no replies; record this as a refusal."""
        reason = "too many messages, and replies are not read"
        record_node_refusal(self.session, RefusedError(ErrorCode.RATE_FLOOD, reason))
        self._drop("unread")

    def _drop(self, reason: str) -> None:
        # Only once: a second cancellation would interrupt the cleanup.
        serving, self._serving = self._serving, None
        if serving is not None:
            counters.count(counters.CONNECTIONS, reason)
            serving.cancel()

    # ---- the end

    async def _clean_up(self, *, said_goodbye: bool) -> None:
        """Stop the connection's tasks, and record that the node left.

        `said_goodbye` is whether the client closed the connection on purpose.
        """
        self._closed = True
        if self._hello_deadline is not None:
            self._hello_deadline.cancel()
        tasks = [task for task in (self._sending, self._ending) if task is not None]
        for task in tasks:
            task.cancel()
        await self._inbox.stop()
        # A task may have failed because the socket was closed, which needs no handling.
        await asyncio.gather(*tasks, return_exceptions=True)
        self.session.leave_pool()
        # A connection without a hello, such as a test of the token, does not end a run.
        goodbye = said_goodbye if self.session.greeted else self.node.said_goodbye
        await self._roster.remove(self, goodbye=goodbye, now=self.session.clock())
