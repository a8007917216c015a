"""The socket to the coordinator: keeps it open, and sends requests over it.

Only this module and `swarm.handshake` import websockets. A lost connection is opened again, with
any number of attempts. Before each attempt, the node waits as long as the coordinator asked for,
otherwise for a random time whose upper bound doubles with each attempt, up to a limit
(`ReconnectLimit`). A permanent refusal makes `run` raise.
"""

import asyncio
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Literal, Protocol, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode

from node_client.errors import CoordinatorRefusedError
from node_client.swarm.backoff import STABLE_S, jittered_backoff
from node_client.swarm.handshake import UnansweredError, explain_failure, open_socket
from swarm_protocol.codec import UndecodableError, decode_from_server, encode
from swarm_protocol.errors import RETURN_CODES, ErrorCode, RefusedError
from swarm_protocol.messages import Hello, NodeMessage, Refused, RoundState, ServerMessage, Welcome
from swarm_protocol.returning import HURRY_S, MAX_PAUSE_S, MAX_WAIT_S, RETURN_WITHIN_S, SOON_S

REPLY_TIMEOUT_S = 30.0
# Minimum waits in seconds, so that a coordinator that asks for none is not called in a loop.
_MIN_WAIT_S = 0.1
_MIN_PAUSE_S = 1.0

log = logging.getLogger(__name__)
Reply = TypeVar("Reply", bound=ServerMessage)


@dataclass(frozen=True)
class ConnectionState:
    """The state of the connection.

    In the phase `waiting`, `reason` says why there is no connection, and `retry_at` is the time of
    the next attempt by the connection's `clock`, or 0 while the node is paused. In the phases
    `waiting` and `connecting`, `planned` is true if the coordinator asked for the wait before the
    attempt.
    """

    phase: Literal["connecting", "connected", "waiting"]
    reason: str = ""
    retry_at: float = 0.0
    planned: bool = False


class ConnectionListener(Protocol):
    """Receives events of the connection. Called on the event loop; must not block."""

    def on_connection_change(self, connection: ConnectionState) -> None:
        """Handle a new state of the connection."""

    def on_welcome(self, welcome: Welcome) -> None:
        """Handle the welcome, which has the season and the current round.

        Called at the start of each connection. May raise CoordinatorRefusedError if the node cannot
        take part.
        """

    def on_announcement(self, message: ServerMessage) -> None:
        """Handle a message that is neither a reply to a request nor a refusal."""


class ReconnectLimit:
    """Determines how long a node may wait before it reconnects. Times are monotonic seconds.

    The limit is `return_within` of the latest Welcome, but at least 1 s and at most MAX_PAUSE_S;
    before the first Welcome, it is RETURN_WITHIN_S. It is MAX_PAUSE_S instead if the connection was
    lost at least HURRY_S ago, or if the latest Welcome or RoundState announced a round that opens
    more than SOON_S from now.
    """

    def __init__(self) -> None:
        self._within_s = RETURN_WITHIN_S
        self._urgent_from = -math.inf

    def update(self, message: ServerMessage, *, at: float) -> None:
        """Update the limit from a message received at the time `at`.

        Only a Welcome or a RoundState has an effect.
        """
        if isinstance(message, Welcome):
            self._within_s = min(max(message.return_within, _MIN_PAUSE_S), MAX_PAUSE_S)
        elif not isinstance(message, RoundState):
            return
        self._urgent_from = -math.inf
        if message.round is not None and message.round.phase == "scheduled":
            opens, now = (datetime.fromisoformat(t) for t in (message.round.opens_at, message.now))
            self._urgent_from = at + (opens - now).total_seconds() - SOON_S

    def max_pause(self, *, lost_at: float, now: float) -> float:
        """Return how many seconds the node may wait before it next tries to connect.

        `lost_at` is the time when the connection was lost, and `now` the current time.
        """
        is_urgent = now >= self._urgent_from and now - lost_at < HURRY_S
        return self._within_s if is_urgent else MAX_PAUSE_S


class CoordinatorConnection:
    """One node's connection to its coordinator, opened again whenever it is lost."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        hello: Hello,
        listener: ConnectionListener,
        backoff: Callable[[int, float], float] = jittered_backoff,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._url = url
        self._token = token
        self._hello = hello
        self._listener = listener
        self._backoff = backoff
        self._clock = clock
        self._socket: ClientConnection | None = None
        self._pending: dict[str, asyncio.Future[ServerMessage]] = {}
        self._listen_timeout: asyncio.Timeout | None = None
        self._welcomed_at: float | None = None
        self._reconnect_limit = ReconnectLimit()
        # The wait in seconds that the coordinator asked for, and why it closed the connection.
        self._retry_after_s: float | None = None
        self._closing_reason: str | None = None
        self._enabled = asyncio.Event()
        self._enabled.set()
        self.connected = asyncio.Event()
        # Features that the coordinator announced on the latest connection.
        self.supports_logprobs = False
        self.supports_provenance = False
        self.supports_declarations = False
        self.supports_signatures = False

    async def run(self) -> None:
        """Keep the node connected until this call is cancelled.

        If the connection is lost, it is opened again. Between `suspend` and `resume`, the node
        stays disconnected. Raises CoordinatorRefusedError if the coordinator refuses the node
        permanently, or if `on_welcome` of the listener raises this error.
        """
        attempt = 0
        planned = False
        lost_at = self._clock()
        while True:
            if not self._enabled.is_set():
                self._listener.on_connection_change(ConnectionState("waiting", "the node pauses"))
                await self._enabled.wait()
                attempt, lost_at = 0, self._clock()
            self._listener.on_connection_change(ConnectionState("connecting", planned=planned))
            self._welcomed_at = self._retry_after_s = self._closing_reason = None
            reason = await self._connect_once()
            if not self._enabled.is_set():
                continue
            now = self._clock()
            if self._welcomed_at is not None:
                lost_at = now
                if now - self._welcomed_at >= STABLE_S:
                    attempt = 0
            planned = self._retry_after_s is not None
            if self._retry_after_s is None:
                longest_s = self._reconnect_limit.max_pause(lost_at=lost_at, now=now)
                delay = self._backoff(attempt, longest_s)
                attempt += 1
            else:
                # Different for each node, so that they do not reconnect together.
                attempt, delay = 0, min(max(self._retry_after_s, _MIN_WAIT_S), MAX_WAIT_S)
            log.info("disconnected (%s), trying again in %.1f s", reason, delay)
            self._listener.on_connection_change(
                ConnectionState("waiting", reason, self._clock() + delay, planned)
            )
            await asyncio.sleep(delay)

    def reconnect(self, *, after_s: float) -> None:
        """End the connection in `after_s` seconds and open a new one, to get a new Welcome.

        Does nothing if there is no connection, or if the present one is already due to end, because
        the next connection begins with a Welcome anyway.
        """
        if self._listen_timeout is not None and self._listen_timeout.when() is None:
            self._stop_listening(after_s=after_s)

    def suspend(self) -> None:
        """Disconnect until `resume`, even if the connection is due to end later."""
        self._enabled.clear()
        self._stop_listening(after_s=0)

    def resume(self) -> None:
        """Connect again after `suspend`."""
        self._enabled.set()

    def _stop_listening(self, *, after_s: float) -> None:
        """End the connection in `after_s` seconds, unless it has ended or is just ending."""
        if self._listen_timeout is not None and not self._listen_timeout.expired():
            self._listen_timeout.reschedule(asyncio.get_running_loop().time() + after_s)

    async def request(
        self, message: NodeMessage, reply: type[Reply], *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> Reply:
        """Send a message and return the reply to it, which must be of type `reply`.

        Raises RefusedError if the coordinator refuses, or if its reply cannot be decoded or is of
        another type. Raises UnansweredError if there is no connection, if the connection is
        lost before the reply, or if no reply arrives within `timeout_s` seconds.
        """
        if self._socket is None:
            raise UnansweredError("not connected")
        answered: asyncio.Future[ServerMessage] = asyncio.get_running_loop().create_future()
        # Retrieves an exception that nothing awaits, when sending failed before the reply.
        answered.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._pending[message.id] = answered
        try:
            async with asyncio.timeout(timeout_s):
                await self._socket.send(encode(message))
                answer = await answered
        except TimeoutError:
            raise UnansweredError(f"no reply within {timeout_s:g} s") from None
        except ConnectionClosed:
            raise UnansweredError("the connection was lost") from None
        finally:
            del self._pending[message.id]
        if not isinstance(answer, reply):
            raise RefusedError(ErrorCode.PROTOCOL_INVALID, f"the reply was {type(answer).__name__}")
        return answer

    async def _connect_once(self) -> str:
        """Run one connection until it ends, and return why it ended."""
        try:
            async with open_socket(self._url, self._token) as socket:
                welcome = await self._handshake(socket)
                self._reconnect_limit.update(welcome, at=self._clock())
                self._listener.on_welcome(welcome)
                self.supports_logprobs = welcome.logprobs
                self.supports_provenance = welcome.provenance
                self.supports_declarations = welcome.declarations
                self.supports_signatures = welcome.chain is not None
                self._socket = socket
                self._welcomed_at = self._clock()
                self.connected.set()
                self._listener.on_connection_change(ConnectionState("connected"))
                why = await self._listen(socket)
                return self._closing_reason or why
        except ConnectionClosed as closed:
            return self._closing_reason or f"the connection was lost: {closed}"
        except TimeoutError:
            return "the coordinator did not answer in time"
        except RefusedError as refusal:
            self._retry_after_s = refusal.retry_after
            return f"the coordinator is not ready: {refusal.message}"
        except (OSError, WebSocketException) as problem:
            failure = explain_failure(problem)
            self._retry_after_s = failure.retry_after
            return str(failure)
        finally:
            self._forget_socket()

    async def _handshake(self, socket: ClientConnection) -> Welcome:
        """Send the hello, wait for the welcome and return it.

        Raises CoordinatorRefusedError for a permanent refusal, RefusedError for a temporary one,
        and TimeoutError after REPLY_TIMEOUT_S.
        """
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            hello = self._hello
            await socket.send(encode(hello))
            while True:
                message = self._decode(await socket.recv())
                if isinstance(message, Refused):
                    self._handle_refusal(message)
                    short = msgspec.structs.replace(hello, hardware=None, key=None)
                    if hello != short and message.code == ErrorCode.PROTOCOL_INVALID:
                        # A coordinator of version 0.1 does not know these fields.
                        hello = short
                        await socket.send(encode(hello))
                    elif message.reply_to == hello.id:
                        raise _as_error(message)
                if isinstance(message, Welcome):
                    return message

    async def _listen(self, socket: ClientConnection) -> str:
        """Receive frames until the connection ends, and return why it ended.

        A close frame is sent if this node ends the connection, or if this call is cancelled.
        """
        try:
            async with asyncio.timeout(
                None if self._enabled.is_set() else 0
            ) as self._listen_timeout:
                await self._receive_all(socket)
            return "the coordinator closed the connection"
        except TimeoutError:
            again = self._enabled.is_set()
            word = "the node connects again" if again else "the node pauses"
            await socket.close(CloseCode.GOING_AWAY, word)
            return "this node asked for a new welcome"
        except asyncio.CancelledError:
            await socket.close(CloseCode.GOING_AWAY, "the node stopped")
            raise

    async def _receive_all(self, socket: ClientConnection) -> None:
        try:
            async for frame in socket:
                self._receive(frame)
        finally:
            self._listen_timeout = None  # A timeout that has ended cannot be rescheduled.

    def _receive(self, frame: str | bytes) -> None:
        """Pass a frame to the request that waits for it, or to the listener."""
        message = self._decode(frame)
        if message is None:
            return
        if isinstance(message, Refused):
            self._handle_refusal(message)
        self._reconnect_limit.update(message, at=self._clock())
        if message.reply_to is None and not isinstance(message, Refused):
            self._listener.on_announcement(message)
            return
        pending = self._pending.get(message.reply_to or "")
        if pending is None or pending.done():
            log.debug("no request waits for this %s", type(message).__name__)
        elif isinstance(message, Refused):
            pending.set_exception(_as_error(message))
        else:
            pending.set_result(message)

    def _handle_refusal(self, refused: Refused) -> None:
        """Raise CoordinatorRefusedError for a permanent refusal.

        If the refusal tells the node to come back later, store the requested wait for the next try.
        """
        if refused.fatal:
            raise CoordinatorRefusedError(refused.message, fix=refused.fix, code=refused.code)
        if refused.reply_to is None:
            log.warning("message from the coordinator: %s %s", refused.message, refused.fix)
        if refused.code in RETURN_CODES:
            self._retry_after_s, self._closing_reason = refused.retry_after, refused.message

    def _decode(self, frame: str | bytes) -> ServerMessage | None:
        """Return the message in a frame, or None if this client cannot decode it.

        If such a frame is a reply, the request that waits for it fails.
        """
        try:
            return decode_from_server(frame)
        except UndecodableError as problem:
            log.warning("ignored a frame from the coordinator: %s (%s)", problem, problem.code)
            pending = self._pending.get(problem.request_id or "")
            if pending is not None and not pending.done():
                pending.set_exception(problem)
            return None

    def _forget_socket(self) -> None:
        self._socket = self._listen_timeout = None
        self.connected.clear()
        for pending in self._pending.values():
            if not pending.done():
                pending.set_exception(UnansweredError("the connection was lost"))


def _as_error(refused: Refused) -> RefusedError:
    return RefusedError(
        refused.code, refused.message, fix=refused.fix, retry_after=refused.retry_after
    )
