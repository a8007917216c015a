"""The judge's rounds: notices an open one, answers it once, and hands in what it owes."""

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

from node_client.display.view import View
from node_client.runtime.worker import ModelWorker
from node_client.storage.answers import MOST_OWED, AnswerSpool, Owed
from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import PASSING, PAUSE_S, Outbox
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    MAX_COMPLETION_CHARS,
    AnswerText,
    FinishReason,
    Question,
    QuestionsOffered,
    RoundInfo,
    SignedReceipt,
)

POLL_S = 20.0
# How old the figures of this node's own row may become in the panel.
STANDING_S = 30.0
QUESTIONS_AT_ONCE = 16
# Of so many rounds it is known that they were sat; only the current one is ever asked for.
ROUNDS_REMEMBERED = 64

log = logging.getLogger(__name__)

Sign = Callable[[Sequence[AnswerText], QuestionsOffered], list[AnswerText]]
Keep = Callable[[int, Sequence[AnswerText], SignedReceipt], None]


class Answered(Protocol):
    """A completion, as the policy returns it."""

    @property
    def text(self) -> str: ...
    @property
    def finish_reason(self) -> FinishReason: ...


class Examinee(Protocol):
    """What an exam needs of a policy."""

    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        system_prompt: str,
    ) -> Sequence[Sequence[Answered]]:
        """Return `completions` answers to each question."""


class Exam:
    """One node's part in the judge's rounds.

    `ring` is the quick way in and the poll the sure one, because announcements may be lost. Every
    answer is in the spool before it is sent. So a client that restarts in a round hands in what it
    owed, and answers only the questions that it had not answered; and as the coordinator keeps the
    first answer to each, none counts twice. `note` is told about every round that is heard of,
    `sign` signs answers before they are owed, and `keep` gets what the coordinator signs in return.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        worker: ModelWorker,
        examinee: Examinee,
        view: View,
        spool: AnswerSpool,
        note: Callable[[RoundInfo | None], None] = lambda announced: None,
        sign: Sign = lambda answers, offered: list(answers),
        keep: Keep = lambda number, answers, signed: None,
        poll_s: float = POLL_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._worker = worker
        self._examinee = examinee
        self._view = view
        self._spool = spool
        self._note = note
        self._sign = sign
        self._keep = keep
        self._poll_s = poll_s
        self._chance = chance
        self._rung = asyncio.Event()
        self._announced: RoundInfo | None = None
        self._sat: deque[int] = deque(maxlen=ROUNDS_REMEMBERED)
        self._asked_standing = -STANDING_S
        # Set while no round that is open is left to be answered.
        self._idle = asyncio.Event()
        self._idle.set()
        self.outbox: Outbox[Owed] = Outbox(
            client=client,
            send=self._hand_in,
            refused=view.note_refusal,
            most=MOST_OWED,
            batch=2 * QUESTIONS_AT_ONCE,
            group=lambda owed: owed[0],
            left=spool.settle,
        )
        # What an earlier run handed in counts too: a restart is no missed round.
        view.answered.update(spool.settled)
        if spool.owed:
            log.info("%d answers of an earlier run are still to be handed in", len(spool.owed))
            self.outbox.put(spool.owed)

    def ring(self, announced: RoundInfo | None) -> None:
        """Take note of what the coordinator said about the current round."""
        self._note(announced)
        self._announced = announced
        self._rung.set()
        self._tell_idle(announced)

    async def finish(self) -> None:
        """Wait until the round that is open, if one is, has been answered or is over."""
        told = self._announced
        if told is None:
            return
        closes = datetime.fromisoformat(told.closes_at)
        left = (closes - datetime.now(UTC)).total_seconds() - self._view.clock_ahead_s
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._idle.wait()

    async def run(self) -> None:
        """Sit every round that opens, until cancelled."""
        wait_s = self._poll_s
        while True:
            try:
                await self._attend(await self._next_news(wait_s=wait_s))
                self._tell_idle(self._announced)
                wait_s = self._poll_pause()
            except UnansweredError:
                await self._client.wait_until_connected()
                wait_s = 0
            except RefusedError as refusal:
                self._view.note_refusal(refusal)
                wait_s = self._poll_pause()
                if refusal.code in PASSING:
                    await asyncio.sleep(refusal.retry_after or PAUSE_S)
                    wait_s = 0
                else:
                    self._idle.set()

    def _tell_idle(self, current: RoundInfo | None) -> None:
        """Say whether a round is left to be answered, by the latest announcement."""
        if current is None or current.phase != "open" or current.number in self._sat:
            self._idle.set()
        else:
            self._idle.clear()

    def _poll_pause(self) -> float:
        return self._poll_s * (0.5 + self._chance())

    async def _next_news(self, *, wait_s: float) -> RoundInfo | None:
        """Return the current round when it is announced, or ask for it after `wait_s`."""
        try:
            async with asyncio.timeout(wait_s):
                await self._rung.wait()
        except TimeoutError:
            self._announced = await self._client.round()
            self._note(self._announced)
            return self._announced
        self._rung.clear()
        return self._announced

    async def _attend(self, current: RoundInfo | None) -> None:
        """Sit the round if it is open and was not sat yet; else see whether scores are there."""
        changed = current != self._view.round
        self._view.note_round(current)
        is_open = current is not None and current.phase == "open"
        if current is not None and is_open and current.number not in self._sat:
            await self._sit(current.number)
        elif self._view.season is not None and (
            (changed and not is_open) or monotonic() - self._asked_standing >= STANDING_S
        ):
            await self._look_at_standing()

    async def _look_at_standing(self) -> None:
        """Ask for the scores; what is refused for good is not asked again before it is due."""
        try:
            self._view.note_standing(await self._client.standing())
        except RefusedError as refusal:
            if refusal.code in PASSING:
                raise
            self._view.note_refusal(refusal)
        self._asked_standing = monotonic()

    async def _sit(self, number: int) -> None:
        """Answer all questions of a round, between two training steps."""
        self._idle.clear()
        try:
            offered = await self._client.questions(number)
        except RefusedError as refusal:
            if refusal.code != ErrorCode.ROUND_PENDING:
                raise
            self._sit_out(number)
            return
        self._note(offered.round)
        answered = self._spool.answered(number)
        open_questions = [asked for asked in offered.questions if asked.id not in answered]
        log.info("round %d: %d questions", number, len(open_questions))
        await self._answer_all(open_questions, offered)
        self._sat.append(number)

    async def _answer_all(self, questions: Sequence[Question], offered: QuestionsOffered) -> None:
        """Answer questions batch by batch until the round ends; each batch is owed at once.

        A node that is stopped leaves the rest to its next start.
        """
        number = offered.round.number
        deadline = monotonic() + _seconds_left(offered)
        async with self._worker.turn:
            for start in range(0, len(questions), QUESTIONS_AT_ONCE):
                if self._view.stopping:
                    log.info("stopped with %d questions left", len(questions) - start)
                    break
                if monotonic() >= deadline + self._given_back(offered):
                    log.warning("round %d ended before all was answered", number)
                    break
                batch = questions[start : start + QUESTIONS_AT_ONCE]
                answers = await self._worker.run(partial(self._answer, batch, offered))
                owed = [(number, answer) for answer in self._sign(answers, offered)]
                self._spool.add(owed)
                self.outbox.put(owed)

    def _sit_out(self, number: int) -> None:
        """Leave a round alone that had opened before this node came."""
        log.info("round %d opened before this node came: waiting for the next one", number)
        self._sat.append(number)
        self._view.sat_out = number

    def _given_back(self, offered: QuestionsOffered) -> float:
        """Return by how many seconds the deadline was moved since, because of an outage."""
        told = self._announced
        if told is None or told.number != offered.round.number:
            return 0.0
        closes, closed = (datetime.fromisoformat(r.closes_at) for r in (told, offered.round))
        return (closes - closed).total_seconds()

    def _answer(self, questions: Sequence[Question], offered: QuestionsOffered) -> list[AnswerText]:
        """Answer questions with the current policy; runs in the model's thread."""
        answers = self._examinee.generate(
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

    async def _hand_in(self, owed: Sequence[Owed]) -> None:
        number = owed[0][0]
        answers = [answer for _, answer in owed]
        keep = partial(self._keep, number, answers)
        received = await self._client.submit(number, answers, keep=keep)
        self._view.note_answers(number, len(received.accepted) + len(received.duplicate))
        for rejected in received.rejected:
            self._view.note_problem(rejected.code, rejected.message, rejected.fix)


def _seconds_left(offered: QuestionsOffered) -> float:
    """Return how long the round stays open, by the coordinator's clock."""
    closes, now = (datetime.fromisoformat(t) for t in (offered.round.closes_at, offered.now))
    return (closes - now).total_seconds()


def _clean(text: str) -> str:
    """Return an answer that the wire takes: one forbidden character must not cost the others."""
    cleaned = text.replace("\x00", "").encode(errors="replace").decode()
    return cleaned[:MAX_COMPLETION_CHARS]
