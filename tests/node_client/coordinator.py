"""A small coordinator over real sockets, for the client's tests only."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TypeVar, cast

import msgspec
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from node_client.site import Site
from swarm_protocol.codec import decode_from_node, encode
from swarm_protocol.errors import FIXES, ErrorCode
from swarm_protocol.messages import (
    AnswersReceived,
    Arm,
    ChainHead,
    ExternalRollout,
    Hardware,
    Hello,
    NodeMessage,
    NodeStanding,
    OfferedQuestion,
    PublishRollouts,
    QuestionsOffered,
    Refused,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    RolloutsPublished,
    RolloutsSampled,
    RoundInfo,
    RoundState,
    SeasonInfo,
    ServerMessage,
    SignedReceipt,
    SubmitAnswers,
    TrainingReported,
    Welcome,
)
from swarm_protocol.prompts import SYSTEM_PROMPT
from swarm_protocol.version import PROTOCOL_VERSION

TOKEN = "a-good-token"

Message = TypeVar("Message", bound=NodeMessage)


def now(*, later_s: float = 0) -> str:
    return (datetime.now(UTC) + timedelta(seconds=later_s)).isoformat()


def open_round(
    number: int = 1, *, questions: int = 2, closes_in_s: float = 60, commitment: str = ""
) -> RoundInfo:
    return RoundInfo(number, "open", now(), now(later_s=closes_in_s), questions, commitment)


class Coordinator:
    """Answers like the real one, and records the messages of nodes.

    Messages of a type in `silent` are not answered. Those of a type in `refusals` are refused with
    its code.
    """

    def __init__(self, *, season: SeasonInfo | None = None) -> None:
        self.season = season
        self.arm: Arm | None = None
        self.upgrade: str | None = None
        self.supports_logprobs = True
        self.supports_provenance = True
        self.supports_declarations = True
        self.supports_hardware = True
        self.chain: ChainHead | None = None
        self.receipt: SignedReceipt | None = None
        self.round: RoundInfo | None = None
        self.system_prompt = SYSTEM_PROMPT
        self.pool: list[ExternalRollout] = []
        self.answers: dict[str, str] = {}
        self.received: list[NodeMessage] = []
        self.headers: list[Headers] = []
        self.silent: set[type[NodeMessage]] = set()
        self.refusals: dict[type[NodeMessage], ErrorCode] = {}
        self.pages: dict[str, tuple[HTTPStatus, str]] = {"/healthz": (HTTPStatus.OK, "ok")}
        self.denial: tuple[HTTPStatus, str] | None = None
        self.retry_after = ""
        self._arrival = asyncio.Condition()
        self._closed: asyncio.Queue[int | None] = asyncio.Queue()
        self._server: Server | None = None
        self._sockets: set[ServerConnection] = set()
        self._port = 0

    @property
    def site(self) -> Site:
        return Site(base=f"http://127.0.0.1:{self._port}")

    async def start(self) -> None:
        """Listen; after a stop, on the same port as before."""
        self._server = await serve(
            self._serve,
            "127.0.0.1",
            self._port,
            process_request=self._admit,
            compression=None,
            reuse_port=True,
        )
        self._port = next(iter(self._server.sockets)).getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def close_connections(self) -> None:
        """Close every connection, but keep listening."""
        assert self._server is not None
        for socket in tuple(self._server.connections):
            await socket.close()

    async def ring(self, message: ServerMessage) -> None:
        await self.send_raw(encode(message))

    async def send_raw(self, frame: str) -> None:
        for socket in self._sockets:
            await socket.send(frame)

    async def wait_for(
        self,
        kind: type[Message],
        *,
        count: int = 1,
        where: Callable[[Message], bool] = lambda message: True,
        timeout_s: float = 60,
    ) -> list[Message]:
        """Wait until nodes have sent at least `count` such messages, and return them all."""

        def found() -> list[Message]:
            return [each for each in self.received if isinstance(each, kind) and where(each)]

        async with asyncio.timeout(timeout_s), self._arrival:
            await self._arrival.wait_for(lambda: len(found()) >= count)
        return found()

    async def close_code(self) -> int | None:
        """Wait until a connection has ended and return the code with which the node closed it."""
        return await self._closed.get()

    def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.path in self.pages:
            return connection.respond(*self.pages[request.path])
        self.headers.append(request.headers)
        if self.denial is not None:
            status, body = self.denial
            response = connection.respond(status, body)
            if self.retry_after:
                response.headers["Retry-After"] = self.retry_after
            return response
        if request.headers.get("Authorization") == f"Bearer {TOKEN}":
            return None
        code = ErrorCode.AUTH_INVALID
        reason = {"code": code, "message": "This token is unknown.", "fix": FIXES[code]}
        return connection.respond(HTTPStatus.FORBIDDEN, json.dumps(reason))

    async def _serve(self, socket: ServerConnection) -> None:
        try:
            async for frame in socket:
                message = decode_from_node(frame)
                async with self._arrival:
                    self.received.append(message)
                    self._arrival.notify_all()
                if type(message) not in self.silent:
                    await socket.send(encode(self._reply(message)))
                if isinstance(message, Hello):
                    self._sockets.add(socket)
        except ConnectionClosed:
            pass
        finally:
            self._sockets.discard(socket)
            self._closed.put_nowait(socket.close_code)

    def _reply(self, message: NodeMessage) -> ServerMessage:
        code = self.refusals.get(type(message))
        if code is not None:
            fatal = code.startswith(("auth.", "client.", "protocol.version"))
            return Refused(message.id, code, "No.", FIXES[code], fatal=fatal, retry_after=0.01)
        match message:
            case Hello(hardware=Hardware()) | Hello(key=str()) if not self.supports_hardware:
                code = ErrorCode.PROTOCOL_INVALID
                return Refused(message.id, code, "No such field.", FIXES[code])
            case Hello():
                return Welcome(
                    reply_to=message.id,
                    protocol=PROTOCOL_VERSION,
                    server="test",
                    node="amber-quiet-heron",
                    arm=self.arm or message.arm,
                    now=now(),
                    season=self.season,
                    round=self.round,
                    upgrade=self.upgrade,
                    logprobs=self.supports_logprobs,
                    provenance=self.supports_provenance,
                    declarations=self.supports_declarations,
                    chain=self.chain,
                )
            case PublishRollouts():
                return RolloutsPublished(message.id, len(message.rollouts), [])
            case RequestRollouts():
                return RolloutsSampled(message.id, self.pool[: message.count])
            case ReportTraining():
                return TrainingReported(message.id)
            case RequestRound():
                return RoundState(message.id, self.round, now())
            case RequestQuestions():
                return self._offer(message)
            case SubmitAnswers():
                return self._store(message)
            case RequestStanding():
                return NodeStanding(
                    message.id, "amber-quiet-heron", (1, 2), 0.5, (0.4, 0.6), 64, 1, 3
                )
        raise AssertionError(message)

    def _offer(self, message: RequestQuestions) -> QuestionsOffered:
        assert self.round is not None
        questions = [
            OfferedQuestion(f"r{self.round.number}q{place}", "chain_sum", f"{place} + 1 = ?")
            for place in range(self.round.questions)
        ]
        offered = QuestionsOffered(message.id, self.round, 8, 0.0, now(), questions)
        return msgspec.structs.replace(offered, system_prompt=self.system_prompt)

    def _store(self, message: SubmitAnswers) -> AnswersReceived:
        given = [answer.question for answer in message.answers]
        duplicate = [question for question in given if question in self.answers]
        for answer in message.answers:
            self.answers.setdefault(answer.question, answer.text)
        accepted = [question for question in given if question not in duplicate]
        return AnswersReceived(message.id, message.round, accepted, duplicate, [], self.receipt)


@asynccontextmanager
async def running(coordinator: Coordinator) -> AsyncIterator[Coordinator]:
    """Run a coordinator for as long as the block lasts."""
    await coordinator.start()
    try:
        yield coordinator
    finally:
        await coordinator.stop()


def with_field(message: ServerMessage, name: str, value: object) -> str:
    """Return a message's frame with one more field, as a newer server would send it."""
    return json.dumps({**cast(dict[str, object], msgspec.to_builtins(message)), name: value})
