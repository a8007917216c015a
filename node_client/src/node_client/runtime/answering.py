"""Takes part in the judge's rounds: answers each open round once, and submits the answers."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from time import monotonic
from typing import Protocol

from node_client.display.view import NodeView
from node_client.runtime.worker import ModelWorker
from node_client.storage.answers import MAX_PENDING, AnswerSpool, PendingAnswer
from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import PAUSE_S, TEMPORARY_CODES, Outbox
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    MAX_COMPLETION_CHARS,
    AnswerText,
    FinishReason,
    OfferedQuestion,
    QuestionsOffered,
    RoundInfo,
    SignedReceipt,
)

POLL_S = 20.0
# From this age on, this node's own leaderboard row in the panel is requested again.
STANDING_MAX_AGE_S = 30.0
QUESTIONS_AT_ONCE = 16
# Number of answered rounds to remember; only the current one is ever asked for.
MAX_HANDLED = 64

log = logging.getLogger(__name__)

SignAnswers = Callable[[Sequence[AnswerText], QuestionsOffered], list[AnswerText]]
StoreReceipt = Callable[[int, Sequence[AnswerText], SignedReceipt], None]


class GeneratedAnswer(Protocol):
    """A completion, as the policy returns it."""

    @property
    def text(self) -> str: ...
    @property
    def finish_reason(self) -> FinishReason: ...


class AnswerGenerator(Protocol):
    """The part of a policy that answers the judge's questions."""

    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        system_prompt: str,
    ) -> Sequence[Sequence[GeneratedAnswer]]:
        """Return `completions` answers to each question."""


class RoundAnswerer:
    """Answers the judge's rounds for one node.

    It learns of a round through `handle_announcement`. Because announcements may be lost, it also
    requests the current round about every `poll_s` seconds.

    Every answer is written to the spool, a file, before it is sent. A client that restarts during a
    round submits the answers in the spool and answers only the remaining questions. The coordinator
    keeps the first answer to each question, so no question counts twice.

    Callbacks:

    - `record_commitment` is called with every round that the coordinator sends, or with None if
      there is no round.
    - `sign` signs answers before they are queued.
    - `store_receipt` is called with a round's number, the submitted answers and the coordinator's
      signed receipt.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        worker: ModelWorker,
        generator: AnswerGenerator,
        view: NodeView,
        spool: AnswerSpool,
        record_commitment: Callable[[RoundInfo | None], None] = lambda announced: None,
        sign: SignAnswers = lambda answers, offered: list(answers),
        store_receipt: StoreReceipt = lambda number, answers, signed: None,
        poll_s: float = POLL_S,
    ) -> None:
        self._client = client
        self._worker = worker
        self._generator = generator
        self._view = view
        self._spool = spool
        self._record_commitment = record_commitment
        self._sign = sign
        self._store_receipt = store_receipt
        self._poll_s = poll_s
        self._announcement_arrived = asyncio.Event()
        self._announced: RoundInfo | None = None
        self._handled: deque[tuple[int, str]] = deque(maxlen=MAX_HANDLED)
        self._standing_at = -STANDING_MAX_AGE_S
        # Set while there is no open round to answer.
        self._idle = asyncio.Event()
        self._idle.set()
        self.outbox: Outbox[PendingAnswer] = Outbox(
            client=client,
            send=self._submit,
            on_refused=view.show_refusal,
            capacity=MAX_PENDING,
            batch=2 * QUESTIONS_AT_ONCE,
            batch_key=lambda pending: pending[0],
            on_removed=spool.settle,
        )
        # Answers of an earlier run count too: a restart is not a missed round.
        view.answered.update(spool.settled)
        if spool.pending:
            log.info("%d answers of an earlier run are still to be submitted", len(spool.pending))
            self.outbox.put(spool.pending)

    def handle_announcement(self, announced: RoundInfo | None) -> None:
        """Process the coordinator's announcement of the current round (None: there is no round)."""
        self._record_commitment(announced)
        self._announced = announced
        self._announcement_arrived.set()
        self._update_idle(announced)

    async def finish(self) -> None:
        """Wait until the open round, if there is one, has been answered or has ended."""
        announced = self._announced
        if announced is None:
            return
        closes = datetime.fromisoformat(announced.closes_at)
        remaining_s = (closes - datetime.now(UTC)).total_seconds() - self._view.clock_ahead_s
        with suppress(TimeoutError):
            async with asyncio.timeout(remaining_s):
                await self._idle.wait()

    async def run(self) -> None:
        """Answer every round that opens, until cancelled."""
        wait_s = self._poll_s
        while True:
            try:
                await self._handle_round(await self._await_round(wait_s=wait_s))
                self._update_idle(self._announced)
                wait_s = self._jittered_poll_s()
            except UnansweredError:
                await self._client.wait_until_connected()
                wait_s = 0
            except RefusedError as refusal:
                self._view.show_refusal(refusal)
                wait_s = self._jittered_poll_s()
                if refusal.code in TEMPORARY_CODES:
                    await asyncio.sleep(refusal.retry_after or PAUSE_S)
                    wait_s = 0
                else:
                    self._idle.set()

    def _update_idle(self, current: RoundInfo | None) -> None:
        """Clear `_idle` if the current round is open and still to be answered, otherwise set it."""
        if current is None or current.phase != "open" or _key(current) in self._handled:
            self._idle.set()
        else:
            self._idle.clear()

    def _jittered_poll_s(self) -> float:
        return self._poll_s * (0.5 + random.random())

    async def _await_round(self, *, wait_s: float) -> RoundInfo | None:
        """Wait up to `wait_s` seconds for an announcement, and return the announced current round.

        If none arrives, request the round and return it. The result is None if there is no round.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._announcement_arrived.wait()
        except TimeoutError:
            self._announced = await self._client.request_round()
            self._record_commitment(self._announced)
            return self._announced
        self._announcement_arrived.clear()
        return self._announced

    async def _handle_round(self, current: RoundInfo | None) -> None:
        """Answer the round if it is open and not answered yet.

        Otherwise, while a season is running, request this node's standing in two cases: the shown
        standing is older than STANDING_MAX_AGE_S, or the round has changed and is not open.
        """
        changed = current != self._view.round
        self._view.show_round(current)
        is_open = current is not None and current.phase == "open"
        if current is not None and is_open and _key(current) not in self._handled:
            await self._answer_round(current)
        elif self._view.season is not None and (
            (changed and not is_open) or monotonic() - self._standing_at >= STANDING_MAX_AGE_S
        ):
            await self._fetch_standing()

    async def _fetch_standing(self) -> None:
        """Request this node's standing and show it.

        A temporary refusal is raised as RefusedError; any other refusal is shown.
        """
        try:
            self._view.show_standing(await self._client.request_standing())
        except RefusedError as refusal:
            if refusal.code in TEMPORARY_CODES:
                raise
            self._view.show_refusal(refusal)
        self._standing_at = monotonic()

    async def _answer_round(self, current: RoundInfo) -> None:
        """Answer all questions of a round, between two training steps.

        If the node must wait for the next round (ROUND_PENDING), it skips this round. Raises
        RefusedError if the coordinator refuses to send the questions for another reason.
        """
        number = current.number
        self._idle.clear()
        try:
            offered = await self._client.request_questions(number)
        except RefusedError as refusal:
            if refusal.code != ErrorCode.ROUND_PENDING:
                raise
            log.info("round %d opened before this node joined: waiting for the next one", number)
            self._handled.append(_key(current))
            self._view.skipped_round = number
            return
        self._record_commitment(offered.round)
        answered = self._spool.answered(number)
        open_questions = [question for question in offered.questions if question.id not in answered]
        log.info("round %d: %d questions", number, len(open_questions))
        await self._answer_all(open_questions, offered)
        self._handled.append(_key(current))

    async def _answer_all(
        self, questions: Sequence[OfferedQuestion], offered: QuestionsOffered
    ) -> None:
        """Answer questions in batches until the round ends; queue the answers after each batch.

        If the node is stopped and starts again before the round ends, it then answers the remaining
        questions.
        """
        number = offered.round.number
        deadline = monotonic() + _seconds_left(offered)
        async with self._worker.turn:
            for start in range(0, len(questions), QUESTIONS_AT_ONCE):
                if self._view.stopping:
                    log.info("stopped with %d questions left", len(questions) - start)
                    break
                if monotonic() >= deadline + self._extension_s(offered):
                    log.warning("round %d ended before all questions were answered", number)
                    break
                batch = questions[start : start + QUESTIONS_AT_ONCE]
                answers = await self._worker.run(partial(self._answer, batch, offered))
                pending = [(number, answer) for answer in self._sign(answers, offered)]
                self._spool.add(pending)
                self.outbox.put(pending)

    def _extension_s(self, offered: QuestionsOffered) -> float:
        """Return the seconds by which an outage moved the deadline after `offered` was sent."""
        announced = self._announced
        if announced is None or announced.number != offered.round.number:
            return 0.0
        closes, before = (datetime.fromisoformat(r.closes_at) for r in (announced, offered.round))
        return (closes - before).total_seconds()

    def _answer(
        self, questions: Sequence[OfferedQuestion], offered: QuestionsOffered
    ) -> list[AnswerText]:
        """Answer questions with the current policy; runs in the model's thread."""
        answers = self._generator.generate(
            [question.prompt for question in questions],
            completions=1,
            max_new_tokens=offered.max_new_tokens,
            temperature=offered.temperature,
            system_prompt=offered.system_prompt,
        )
        return [
            AnswerText(
                question=question.id,
                text=_clean(answered[0].text),
                finish_reason=answered[0].finish_reason,
            )
            for question, answered in zip(questions, answers, strict=True)
        ]

    async def _submit(self, pending: Sequence[PendingAnswer]) -> None:
        number = pending[0][0]
        answers = [answer for _, answer in pending]
        on_receipt = partial(self._store_receipt, number, answers)
        received = await self._client.submit_answers(number, answers, on_receipt=on_receipt)
        self._view.show_answers(number, len(received.accepted) + len(received.duplicate))
        for rejected in received.rejected:
            self._view.show_problem(rejected.code, rejected.message, rejected.fix)


def _key(announced: RoundInfo) -> tuple[int, str]:
    """Return what identifies a round: its number and its commitment.

    A site that has restored a backup uses the numbers of the lost rounds again.
    """
    return announced.number, announced.commitment


def _seconds_left(offered: QuestionsOffered) -> float:
    """Return for how many seconds the round was still open when its questions were offered."""
    closes, now = (datetime.fromisoformat(t) for t in (offered.round.closes_at, offered.now))
    return (closes - now).total_seconds()


def _clean(text: str) -> str:
    """Return an answer as the protocol accepts it: of limited length, without invalid characters.

    One invalid answer would make the coordinator refuse the whole batch.
    """
    cleaned = text.replace("\x00", "").encode(errors="replace").decode()
    return cleaned[:MAX_COMPLETION_CHARS]
