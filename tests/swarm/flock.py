"""Toy nodes that survive outages: the client's own connection, answers and outbox, around a
policy that can calculate sums and answers when the test allows it.
"""

import asyncio
import math
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from node_client.display.view import NodeView
from node_client.runtime.answering import RoundAnswerer
from node_client.runtime.worker import ModelWorker
from node_client.site import Site
from node_client.storage.answers import AnswerSpool
from node_client.swarm.client import SwarmClient, new_id
from node_client.swarm.connection import ConnectionState, CoordinatorConnection
from swarm_protocol.messages import (
    AnswersReceived,
    AnswerText,
    FinishReason,
    Hello,
    RoundInfo,
    RoundState,
    ServerMessage,
    SignedReceipt,
    Welcome,
)
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION

WRONG = "<answer>who knows</answer>"
# A node of skill 3 gives the right answer to three of eight questions.
MOST_SKILL = 8
# The pause between two answers of the flock.
PAUSE_S = 0.05


@dataclass(frozen=True)
class Written:
    """An answer, as a policy returns it."""

    text: str
    finish_reason: FinishReason = "stop"


def solve(question: str) -> int:
    """Return the answer to a question of `chain_sum` or `gcd`."""
    numbers = [int(number) for number in re.findall(r"\d+", question)]
    if "Divisor" in question:
        return math.gcd(*numbers)
    left, right = numbers
    return left - right if " - " in question else left + right


class Pupil:
    """A model that writes one answer, in `pace_s`, each time that the test allows one."""

    def __init__(self, *, skill: int) -> None:
        self.pace_s = 0.0
        self._skill = skill
        self._asked = 0
        self._allowed = threading.Semaphore(0)

    def allow(self, answers: int = 1) -> None:
        self._allowed.release(answers)

    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        system_prompt: str,
    ) -> list[list[Written]]:
        return [[Written(self._answer(question))] * completions for question in questions]

    def _answer(self, question: str) -> str:
        self._allowed.acquire()
        time.sleep(self.pace_s)
        is_able = self._asked % MOST_SKILL < self._skill
        self._asked += 1
        return f"Sure: <answer>{solve(question)}</answer>" if is_able else WRONG


class RecordingClient(SwarmClient):
    """A client that records submitted and acknowledged answers by question."""

    def __init__(self, connection: CoordinatorConnection) -> None:
        super().__init__(connection)
        self.sent: dict[str, str] = {}
        self.acked: set[str] = set()
        self.rejected: list[str] = []

    async def submit_answers(
        self,
        number: int,
        answers: Sequence[AnswerText],
        *,
        on_receipt: Callable[[SignedReceipt], None] = lambda signed: None,
    ) -> AnswersReceived:
        """Submit answers and record the reply."""
        self.sent |= {answer.question: answer.text for answer in answers}
        received = await super().submit_answers(number, answers, on_receipt=on_receipt)
        self.acked |= {*received.accepted, *received.duplicate}
        self.rejected += [f"{each.code}: {each.message}" for each in received.rejected]
        return received


class ToyNode:
    """A node with a real client and without a model.

    It can ignore announced rounds: then it is connected and has no seat.
    """

    def __init__(self, *, site: Site, name: str, token: str, skill: int, folder: Path) -> None:
        self.name = name
        self.pupil = Pupil(skill=skill)
        self.is_connected = False
        self._ignores_rounds = False
        self._missed: RoundInfo | None = None
        hello = Hello(
            id=new_id(),
            protocol=PROTOCOL_VERSION,
            client=CLIENT_VERSION,
            model="toy",
            tokenizer="none",
            arm="isolated" if skill % 2 else "swarm",
            parameters=1000,
        )
        self._worker = ModelWorker()
        self._connection = CoordinatorConnection(
            url=site.socket, token=token, hello=hello, listener=self
        )
        self.client = RecordingClient(self._connection)
        self._view = NodeView(model="toy", parameters=1000, device="cpu", arm=hello.arm)
        self.answerer = RoundAnswerer(
            client=self.client,
            worker=self._worker,
            generator=self.pupil,
            view=self._view,
            spool=AnswerSpool(folder / f"{name}.jsonl", site=site, token=token),
        )

    def on_connection_change(self, connection: ConnectionState) -> None:
        self.is_connected = connection.phase == "connected"

    def on_welcome(self, welcome: Welcome) -> None:
        self._view.season = welcome.season
        self._note(welcome.round)

    def on_announcement(self, message: ServerMessage) -> None:
        if isinstance(message, RoundState):
            self._note(message.round)

    def ignore_rounds(self) -> None:
        self._ignores_rounds = True

    def resume_rounds(self) -> None:
        """Stop ignoring rounds, and process the missed one. Call it on the flock's loop."""
        self._ignores_rounds = False
        self.answerer.handle_announcement(self._missed)

    def _note(self, current: RoundInfo | None) -> None:
        self._missed = current
        if not self._ignores_rounds:
            self.answerer.handle_announcement(current)

    async def run(self) -> None:
        async with self._worker, asyncio.TaskGroup() as group:
            for job in (self._connection.run(), self.answerer.run(), self.answerer.outbox.run()):
                group.create_task(job)


class Flock:
    """Nodes of skill 1, 2, 3, ..., in their own thread, because the test may block."""

    def __init__(self, *, site: Site, tokens: Mapping[str, str], folder: Path) -> None:
        self.nodes = [
            ToyNode(site=site, name=name, token=token, skill=skill, folder=folder)
            for skill, (name, token) in enumerate(tokens.items(), start=1)
        ]
        self.allowed = 0
        self._loop = asyncio.new_event_loop()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="flock")

    def __enter__(self) -> Self:
        self._life = self._loop.create_task(self._live())
        self._running = self._thread.submit(self._loop.run_until_complete, self._life)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for node in self.nodes:
            node.pupil.allow(1000)  # A waiting pupil would block the end of its thread.
        self._loop.call_soon_threadsafe(self._life.cancel)
        with suppress(asyncio.CancelledError):
            self._running.result(timeout=20)
        self._thread.shutdown()
        self._loop.close()

    async def _live(self) -> None:
        async with asyncio.TaskGroup() as group:
            for node in self.nodes:
                group.create_task(node.run())

    # ---- the interface for tests

    def allow_answers(
        self, *, each: int, nodes: Sequence[ToyNode] | None = None, pause_s: float = PAUSE_S
    ) -> None:
        """Let nodes write `each` more answers, in turn, without waiting for them."""
        turns = [*(self.nodes if nodes is None else nodes)] * each
        self.allowed += len(turns)
        asyncio.run_coroutine_threadsafe(_allow(turns, pause_s=pause_s), self._loop)

    def resume_rounds(self) -> None:
        """Let nodes that ignored rounds process them again."""
        for node in self.nodes:
            self._loop.call_soon_threadsafe(node.resume_rounds)

    @property
    def connected(self) -> int:
        """The number of connected nodes."""
        return sum(node.is_connected for node in self.nodes)

    @property
    def sent(self) -> dict[tuple[str, str], str]:
        """The submitted answers, acknowledged or not, by node and question."""
        return {
            (node.name, question): text
            for node in self.nodes
            for question, text in node.client.sent.copy().items()
        }

    @property
    def acked(self) -> set[tuple[str, str]]:
        """The acknowledged answers, as node and question."""
        return {
            (node.name, question) for node in self.nodes for question in node.client.acked.copy()
        }

    @property
    def are_all_waiting(self) -> bool:
        """Whether each node has a submitted answer that is not acknowledged."""
        return all(len(node.answerer.outbox) > 0 for node in self.nodes)

    @property
    def rejected(self) -> list[str]:
        """The reasons of rejected answers."""
        return [reason for node in self.nodes for reason in node.client.rejected]


async def _allow(turns: Sequence[ToyNode], *, pause_s: float) -> None:
    for node in turns:
        node.pupil.allow()
        await asyncio.sleep(pause_s)
