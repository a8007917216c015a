"""Simulated nodes on real sockets that all submit their signed answers at the same moment."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from websockets.asyncio.client import ClientConnection

from bench.node_socket import MAX_CONNECTING, join, request
from swarm_protocol.codec import decode_from_server
from swarm_protocol.messages import (
    AnswersReceived,
    AnswerText,
    OfferedQuestion,
    QuestionsOffered,
    RequestQuestions,
    RoundState,
    SubmitAnswers,
)
from swarm_record.answers import AnswerEntry, encode_signed_answer, hash_text
from swarm_record.keys import make_key, public_key_of, sign


@dataclass
class CrowdNode:
    """One connected node; `number` is its index in the crowd, `key` its signing key."""

    connection: ClientConnection
    number: int
    key: bytes
    name: str
    offered: QuestionsOffered | None = None
    answers: list[AnswerText] = field(default_factory=list)

    async def request_questions(self, number: int) -> None:
        """Take a seat in round `number`, and keep the offered questions."""
        reply = await request(self.connection, RequestQuestions(id="questions", round=number))
        assert isinstance(reply, QuestionsOffered), reply
        self.offered = reply

    def answer_all(self) -> None:
        """Write a signed answer to each offered question.

        Writing is not timed, because real nodes write their answers on their own machines.
        """
        assert self.offered is not None
        questions = enumerate(self.offered.questions, start=1)
        self.answers = [
            self._answer(position, question, self.offered) for position, question in questions
        ]

    async def submit(self, number: int) -> int:
        """Submit all answers of round `number`; return how many were accepted."""
        reply = await request(
            self.connection, SubmitAnswers(id="answers", round=number, answers=self.answers)
        )
        assert isinstance(reply, AnswersReceived), reply
        assert reply.receipt is not None
        return len(reply.accepted)

    def _answer(
        self, position: int, question: OfferedQuestion, offered: QuestionsOffered
    ) -> AnswerText:
        """Return a signed answer about as long as those of a small model."""
        thought = f"Let me think about question {position} step by step. " * 4
        text = f"{thought}<answer>{(self.number * 7 + position) % 97}</answer>"
        entry = AnswerEntry(self.name, position, question.id, hash_text(text))
        current = offered.round
        signed = encode_signed_answer(entry, number=current.number, commitment=current.commitment)
        return AnswerText(question.id, text, "stop", signature=sign(self.key, signed))


@asynccontextmanager
async def connected_crowd(url: str, tokens: Sequence[str]) -> AsyncIterator[list[CrowdNode]]:
    """Connect a node for each token, send its hello, and close all connections after the block."""
    gate = asyncio.Semaphore(MAX_CONNECTING)
    members = await asyncio.gather(*(_join(url, t, i, gate) for i, t in enumerate(tokens)))
    try:
        yield members
    finally:
        await asyncio.gather(*(member.connection.close() for member in members))


async def _join(url: str, token: str, number: int, gate: asyncio.Semaphore) -> CrowdNode:
    key = make_key()
    arm: Literal["swarm", "isolated"] = "swarm" if number % 2 else "isolated"
    connection, welcome = await join(url, token, gate, arm=arm, key=public_key_of(key))
    return CrowdNode(connection, number, key, welcome.node)


async def await_opening(member: CrowdNode, number: int) -> None:
    """Wait until a node receives the message that round `number` is open."""
    while True:
        reply = decode_from_server(await member.connection.recv())
        current = reply.round if isinstance(reply, RoundState) else None
        if current is not None and (current.number, current.phase) == (number, "open"):
            return


@dataclass(frozen=True)
class RoundTimes:
    """The times of a round with all nodes, and the number of `accepted` answers.

    `offering_s` is the time in seconds from the first request until the last node had its
    questions, `receiving_s` the time from the first submission until the last node had its receipt.
    """

    offering_s: float
    receiving_s: float
    accepted: int


async def answer_round(members: Sequence[CrowdNode], number: int) -> RoundTimes:
    """Let all nodes take seats in round `number` at once, then submit at once; return the times."""
    start = time.perf_counter()
    await asyncio.gather(*(member.request_questions(number) for member in members))
    seated = time.perf_counter()
    for member in members:
        member.answer_all()
    written = time.perf_counter()
    accepted = await asyncio.gather(*(member.submit(number) for member in members))
    done = time.perf_counter()
    return RoundTimes(seated - start, done - written, sum(accepted))
