"""The socket to the coordinator: kept open, spoken over, and told apart from a refusal.

Only this module and `swarm.handshake` import websockets. A coordinator that cannot be reached is
tried again for ever, with random pauses that grow, in a round only to a few seconds, or after the
wait that it asked for; one that refuses this node for good ends `run`.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Literal, Protocol, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, WebSocketException
from websockets.frames import CloseCode

from node_client.errors import CoordinatorRefusedError
from node_client.swarm.backoff import STABLE_S, jittered_backoff
from node_client.swarm.handshake import UnansweredError, explain_trouble, open_socket
from node_client.swarm.urgency import Urgency
from swarm_protocol.codec import UndecodableError, decode_from_server, encode
from swarm_protocol.errors import RETURN_CODES, ErrorCode, RefusedError
from swarm_protocol.messages import Hello, NodeMessage, Refused, ServerMessage, Welcome
from swarm_protocol.returning import LONGEST_WAIT_S

REPLY_TIMEOUT_S = 30.0
# A coordinator that asks for no wait at all would be asked without end.
_SHORTEST_S = 0.1

log = logging.getLogger(__name__)
Reply = TypeVar("Reply", bound=ServerMessage)


@dataclass(frozen=True)
class Link:
    """How the connection is. While waiting, `retry_at` is the monotonic time of the next try.

    `planned` says that the coordinator is there, and asked this node to wait.
    """

    phase: Literal["connecting", "connected", "waiting"]
    reason: str = ""
    retry_at: float = 0.0
    planned: bool = False


class Listener(Protocol):
    """Who is told about the connection. Called on the event loop; must not block."""

    def link_changed(self, link: Link) -> None:
        """Take note that the connection came, went, or will be tried again."""

    def welcomed(self, welcome: Welcome) -> None:
        """Take note of the season and the round, at each connection.

        May raise CoordinatorRefusedError when the node cannot take part like that.
        """

    def rung(self, doorbell: ServerMessage) -> None:
        """Take note of an announcement."""


class Connection:
    """One node's connection, made again whenever it is lost."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        hello: Hello,
        listener: Listener,
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
        self._waiting: dict[str, asyncio.Future[ServerMessage]] = {}
        self._lease: asyncio.Timeout | None = None
        self._welcomed_at: float | None = None
        self._urgency = Urgency()
        # The wait in seconds that the coordinator asked for, and why it closed the connection.
        self._asked_wait_s: float | None = None
        self._sent_away: str | None = None
        self._wanted = asyncio.Event()
        self._wanted.set()
        self.connected = asyncio.Event()
        # What the coordinator of the latest connection said that it knows.
        self.knows_logprobs = False
        self.knows_provenance = False
        self.knows_declarations = False
        self.knows_signatures = False

    async def run(self) -> None:
        """Stay connected until cancelled. Raises CoordinatorRefusedError when refused for good."""
        attempt = 0
        planned = False
        lost_at = self._clock()
        while True:
            if not self._wanted.is_set():
                self._listener.link_changed(Link("waiting", "the node pauses"))
                await self._wanted.wait()
                attempt, lost_at = 0, self._clock()
            self._listener.link_changed(Link("connecting", planned=planned))
            self._welcomed_at = self._asked_wait_s = self._sent_away = None
            reason = await self._connect_once()
            if not self._wanted.is_set():
                continue
            now = self._clock()
            if self._welcomed_at is not None:
                lost_at = now
            if self._was_stable():
                attempt = 0
            planned = self._asked_wait_s is not None
            if self._asked_wait_s is None:
                longest_s = self._urgency.longest_pause(lost_at=lost_at, now=now)
                delay = self._backoff(attempt, longest_s)
                attempt += 1
            else:
                # It gives each node its own, so that they don't come back together.
                attempt, delay = 0, min(max(self._asked_wait_s, _SHORTEST_S), LONGEST_WAIT_S)
            log.info("disconnected (%s), trying again in %.1f s", reason, delay)
            self._listener.link_changed(Link("waiting", reason, self._clock() + delay, planned))
            await asyncio.sleep(delay)

    def renew(self, *, after_s: float) -> None:
        """Connect again in `after_s` seconds, to be welcomed anew.

        Does nothing while there is no connection, because the next one begins with a welcome.
        """
        if self._lease is not None and self._lease.when() is None:
            self._lease.reschedule(asyncio.get_running_loop().time() + after_s)

    def leave(self) -> None:
        """Say goodbye, and stay away until `come_back`."""
        self._wanted.clear()
        self.renew(after_s=0)

    def come_back(self) -> None:
        """Connect again after `leave`."""
        self._wanted.set()

    async def request(
        self, message: NodeMessage, reply: type[Reply], *, timeout_s: float = REPLY_TIMEOUT_S
    ) -> Reply:
        """Send a message and return the reply to it.

        Raises RefusedError when the coordinator declines and UnansweredError when it says nothing.
        """
        if self._socket is None:
            raise UnansweredError("not connected")
        answered: asyncio.Future[ServerMessage] = asyncio.get_running_loop().create_future()
        # Marks a failure as seen when sending failed first and nobody awaits the answer any more.
        answered.add_done_callback(lambda future: future.cancelled() or future.exception())
        self._waiting[message.id] = answered
        try:
            async with asyncio.timeout(timeout_s):
                await self._socket.send(encode(message))
                answer = await answered
        except TimeoutError:
            raise UnansweredError(f"no reply within {timeout_s:g} s") from None
        except ConnectionClosed:
            raise UnansweredError("the connection was lost") from None
        finally:
            del self._waiting[message.id]
        if not isinstance(answer, reply):
            raise RefusedError(ErrorCode.PROTOCOL_INVALID, f"the reply was {type(answer).__name__}")
        return answer

    def _was_stable(self) -> bool:
        """Whether the coordinator accepted the latest connection and it lasted."""
        welcomed = self._welcomed_at
        return welcomed is not None and self._clock() - welcomed >= STABLE_S

    async def _connect_once(self) -> str:
        """Hold one connection as long as it lasts, and return why it ended."""
        try:
            async with open_socket(self._url, self._token) as socket:
                welcome = await self._greet(socket)
                self._urgency.note(welcome, at=self._clock())
                self._listener.welcomed(welcome)
                self.knows_logprobs = welcome.logprobs
                self.knows_provenance = welcome.provenance
                self.knows_declarations = welcome.declarations
                self.knows_signatures = welcome.chain is not None
                self._socket = socket
                self._welcomed_at = self._clock()
                self.connected.set()
                self._listener.link_changed(Link("connected"))
                why = await self._listen(socket)
                return self._sent_away or why
        except ConnectionClosed as closed:
            return self._sent_away or f"the connection was lost: {closed}"
        except TimeoutError:
            return "the coordinator did not answer in time"
        except RefusedError as refusal:
            self._asked_wait_s = refusal.retry_after
            return f"the coordinator is not ready: {refusal.message}"
        except (OSError, WebSocketException) as problem:
            trouble = explain_trouble(problem)
            self._asked_wait_s = trouble.retry_after
            return str(trouble)
        finally:
            self._forget_socket()

    async def _greet(self, socket: ClientConnection) -> Welcome:
        """Say hello and return the welcome.

        Raises CoordinatorRefusedError, RefusedError when it is refused for now, and TimeoutError.
        """
        async with asyncio.timeout(REPLY_TIMEOUT_S):
            hello = self._hello
            await socket.send(encode(hello))
            while True:
                message = self._decode(await socket.recv())
                if isinstance(message, Refused):
                    self._heed(message)
                    short = msgspec.structs.replace(hello, hardware=None, key=None)
                    if hello != short and message.code == ErrorCode.PROTOCOL_INVALID:
                        # A coordinator of 0.1 knows no such fields.
                        hello = short
                        await socket.send(encode(hello))
                    elif message.reply_to == hello.id:
                        raise _as_error(message)
                if isinstance(message, Welcome):
                    return message

    async def _listen(self, socket: ClientConnection) -> str:
        """Receive frames until the connection ends and return why, or until cancelled.

        When this side ends it, it says goodbye.
        """
        try:
            async with asyncio.timeout(None if self._wanted.is_set() else 0) as self._lease:
                async for frame in socket:
                    self._receive(frame)
            return "the coordinator closed the connection"
        except TimeoutError:
            again = self._wanted.is_set()
            word = "the node connects again" if again else "the node pauses"
            await socket.close(CloseCode.GOING_AWAY, word)
            return "this node asked to be welcomed anew"
        except asyncio.CancelledError:
            await socket.close(CloseCode.GOING_AWAY, "the node stopped")
            raise

    def _receive(self, frame: str | bytes) -> None:
        """Hand a frame to whoever waits for it."""
        message = self._decode(frame)
        if message is None:
            return
        if isinstance(message, Refused):
            self._heed(message)
        self._urgency.note(message, at=self._clock())
        if message.reply_to is None and not isinstance(message, Refused):
            self._listener.rung(message)
            return
        waiting = self._waiting.get(message.reply_to or "")
        if waiting is None or waiting.done():
            log.debug("nobody waits for this %s any more", type(message).__name__)
        elif isinstance(message, Refused):
            waiting.set_exception(_as_error(message))
        else:
            waiting.set_result(message)

    def _heed(self, refused: Refused) -> None:
        """Take note of a refusal after which the coordinator hangs up, for good or for a while."""
        if refused.fatal:
            raise CoordinatorRefusedError(refused.message, fix=refused.fix, code=refused.code)
        if refused.reply_to is None:
            log.warning("the coordinator says: %s %s", refused.message, refused.fix)
        if refused.code in RETURN_CODES:
            self._asked_wait_s, self._sent_away = refused.retry_after, refused.message

    def _decode(self, frame: str | bytes) -> ServerMessage | None:
        """Return the message, or None for one that this client's version does not know."""
        try:
            return decode_from_server(frame)
        except UndecodableError as problem:
            log.warning("ignored a frame of the coordinator: %s (%s)", problem, problem.code)
            waiting = self._waiting.get(problem.request_id or "")
            if waiting is not None and not waiting.done():
                waiting.set_exception(problem)
            return None

    def _forget_socket(self) -> None:
        self._socket = self._lease = None
        self.connected.clear()
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(UnansweredError("the connection was lost"))


def _as_error(refused: Refused) -> RefusedError:
    return RefusedError(
        refused.code, refused.message, fix=refused.fix, retry_after=refused.retry_after
    )
