"""A listener that can be awaited, and a client connected to a test's coordinator."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from time import monotonic

from node_client.display.view import NodeView
from node_client.swarm.client import SwarmClient
from node_client.swarm.connection import ConnectionState, CoordinatorConnection
from swarm_protocol.messages import FinishReason, Hello, ServerMessage, Welcome
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from tests.node_client.coordinator import TOKEN, Coordinator

HELLO = Hello(
    id="hello",
    protocol=PROTOCOL_VERSION,
    client=CLIENT_VERSION,
    model="toy",
    tokenizer="abc",
    arm="swarm",
)


def no_backoff(attempt: int, longest_s: float) -> float:
    """Wait almost no time before connecting again."""
    return 0.01


class Notebook:
    """A listener that records everything and lets a test wait for it."""

    def __init__(self) -> None:
        self.links: list[ConnectionState] = []
        self.welcomes: list[Welcome] = []
        self.doorbells: list[ServerMessage] = []
        self._changed = asyncio.Event()

    def on_connection_change(self, connection: ConnectionState) -> None:
        self.links.append(connection)
        self._changed.set()

    def on_welcome(self, welcome: Welcome) -> None:
        self.welcomes.append(welcome)
        self._changed.set()

    def on_announcement(self, message: ServerMessage) -> None:
        self.doorbells.append(message)
        self._changed.set()

    async def until(self, happened: Callable[[], bool]) -> None:
        """Return as soon as a recorded event makes `happened()` true."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()


@dataclass
class Connected:
    """The parts that a test of the client works with."""

    client: SwarmClient
    notebook: Notebook
    connection: CoordinatorConnection


@asynccontextmanager
async def running_connection(
    coordinator: Coordinator,
    *,
    token: str = TOKEN,
    hello: Hello = HELLO,
    backoff: Callable[[int, float], float] = no_backoff,
    clock: Callable[[], float] = monotonic,
) -> AsyncIterator[Connected]:
    """Connect a client to the coordinator while the block runs."""
    notebook = Notebook()
    connection = CoordinatorConnection(
        url=coordinator.site.socket,
        token=token,
        hello=hello,
        listener=notebook,
        backoff=backoff,
        clock=clock,
    )
    running = asyncio.create_task(connection.run())
    try:
        await connection.connected.wait()
        yield Connected(SwarmClient(connection), notebook, connection)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@dataclass(frozen=True)
class Answer:
    text: str
    finish_reason: FinishReason = "stop"


class EchoModel:
    """A model that answers with the question, and records what it was asked.

    `before_batch` is called in the model's thread before each batch.
    """

    def __init__(
        self, text: str | None = None, *, before_batch: Callable[[], object] = lambda: None
    ) -> None:
        self.questions: list[str] = []
        self.system_prompts: list[str] = []
        self._text = text
        self._before_batch = before_batch

    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        system_prompt: str,
    ) -> list[list[Answer]]:
        self._before_batch()
        self.questions += questions
        self.system_prompts.append(system_prompt)
        return [[Answer(self._text or question)] * completions for question in questions]


def empty_view() -> NodeView:
    return NodeView(model="toy", parameters=1000, device="cpu", arm="swarm")


async def lose(coordinator: Coordinator, node: Connected) -> None:
    """Close the connection and wait for the next welcome."""
    welcomes = len(node.notebook.welcomes)
    await coordinator.close_connections()
    await node.notebook.until(lambda: len(node.notebook.welcomes) > welcomes)
    await node.connection.connected.wait()
