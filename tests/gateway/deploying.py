"""A real web process that is stopped while nodes are active, and what it acknowledged to them."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from secrets import token_hex

import msgspec
from django.db import connection
from websockets.exceptions import ConnectionClosed

from judge.models import Season
from swarm_protocol.messages import (
    AnswersReceived,
    NodeMessage,
    PublishRollouts,
    Refused,
    ReportTraining,
    RequestRollouts,
    RolloutsPublished,
    RolloutsSampled,
    ServerMessage,
    SubmitAnswers,
    TrainingReported,
)
from swarm_web.local.commands import here, serve_web
from tests.factories import make_rollout
from tests.gateway.sessions import answers_to
from tests.sockets import PATIENCE_S, NodeSocket, node_socket


@dataclass
class WebProcess:
    """A web process, started as in a deployment."""

    port: int
    process: asyncio.subprocess.Process

    @property
    def url(self) -> str:
        """Its `ws://` address."""
        return f"ws://127.0.0.1:{self.port}"

    async def stop(self) -> int:
        """Send SIGTERM, as a deployment does, and return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_S):
            return await self.process.wait()


@asynccontextmanager
async def web_process(*, port: int = 0, **settings: str) -> AsyncIterator[WebProcess]:
    """Run a web process on the test database, on a free port unless one is given."""
    database = connection.settings_dict
    address = "postgres://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**database)
    listener = socket.create_server(("127.0.0.1", port))
    process = await asyncio.create_subprocess_exec(
        *here(serve_web(host="127.0.0.1", port=0)),
        *("--fd", str(listener.fileno())),
        env=os.environ | {"DATABASE_URL": address} | settings,
        pass_fds=[listener.fileno()],
        stderr=sys.stderr,
    )
    port = listener.getsockname()[1]
    listener.close()
    try:
        await _wait_until_ready(port)
        yield WebProcess(port, process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _wait_until_ready(port: int) -> None:
    """Request a page: the request waits in the socket's backlog while the process starts."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    async with asyncio.timeout(6 * PATIENCE_S):
        assert b"200" in await reader.readline()
    writer.close()


@dataclass
class ActiveNode:
    """A node that sends one message after another and records what was acknowledged.

    `questions` are not answered yet. `refusal` and `code` are the last message and the close
    code of a connection that the server ended.
    """

    name: str
    token: str
    season: Season
    round: int
    questions: list[str]
    answered: list[str] = field(default_factory=list)
    published: int = 0
    sampled: int = 0
    step: int = 0
    refusal: Refused | None = None
    code: int | None = None
    busy: asyncio.Event = field(default_factory=asyncio.Event)

    async def work(self, url: str) -> None:
        """Send messages until the connection ends."""
        async with node_socket(url, self.token) as node:
            with suppress(ConnectionClosed):
                for message in self._messages():
                    self._note(await self._ask(node, message))
                    if self.step >= 2:
                        self.busy.set()
            self.code = await node.close_code()

    async def _ask(self, node: NodeSocket, message: NodeMessage) -> ServerMessage:
        with suppress(ConnectionClosed):  # Messages received before can still be read.
            await node.send(message)
        while (received := await node.hear()).reply_to != message.id:
            if isinstance(received, Refused):
                self.refusal = received
        return received

    def _messages(self) -> Iterator[NodeMessage]:
        for step in count(1):
            rollout = make_rollout(self.season, rollout_id=f"{self.name}{step}")
            texts = [
                msgspec.structs.replace(completion, text=token_hex(16))
                for completion in rollout.completions
            ]
            rollout = msgspec.structs.replace(rollout, completions=texts)
            yield PublishRollouts(id=f"p{step}", rollouts=[rollout])
            yield RequestRollouts(id=f"s{step}", count=2)
            if self.questions:
                yield self._answer(step)
            yield ReportTraining(
                id=f"r{step}",
                step=step,
                training_reward=0.5,
                informative_share=0.5,
                local_used=step,
                external_used=0,
            )

    def _answer(self, step: int) -> SubmitAnswers:
        answers = answers_to(self.questions[:1])
        return SubmitAnswers(id=f"a{step}", round=self.round, answers=answers)

    def _note(self, reply: ServerMessage) -> None:
        match reply:
            case AnswersReceived():
                assert not reply.rejected, reply.rejected
                self.answered += reply.accepted
                del self.questions[:1]
            case RolloutsPublished():
                self.published += reply.accepted
            case RolloutsSampled():
                self.sampled += len(reply.rollouts)
            case TrainingReported():
                self.step += 1
            case other:
                raise AssertionError(other)


async def deploy_during_work(site: WebProcess, nodes: Sequence[ActiveNode]) -> int:
    """Stop the process while all nodes send messages, and return its exit code."""
    async with asyncio.TaskGroup() as group:
        for node in nodes:
            group.create_task(node.work(site.url))
        async with asyncio.timeout(6 * PATIENCE_S):
            for node in nodes:
                await node.busy.wait()
        return await site.stop()
