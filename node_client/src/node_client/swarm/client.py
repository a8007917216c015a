"""A node's requests to its coordinator, as typed calls over the connection."""

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TypeVar

import msgspec

from node_client.swarm.connection import CoordinatorConnection
from swarm_protocol.codec import MAX_FRAME_BYTES
from swarm_protocol.logprobs import without_logprobs
from swarm_protocol.messages import (
    MAX_ANSWERS,
    MAX_REQUESTED,
    MAX_ROLLOUTS,
    AnswersReceived,
    AnswerText,
    ExternalRollout,
    NodeStanding,
    Preference,
    PublishRollouts,
    QuestionsOffered,
    Rejected,
    ReportTraining,
    RequestQuestions,
    RequestRollouts,
    RequestRound,
    RequestStanding,
    Rollout,
    RolloutsPublished,
    RolloutsSampled,
    RoundInfo,
    RoundState,
    SignedReceipt,
    SubmitAnswers,
    TrainingReported,
)

# Leaves space in a frame for the rest of the message.
MAX_ITEMS_BYTES = MAX_FRAME_BYTES - 4096

Item = TypeVar("Item", bound=msgspec.Struct)


def new_id() -> str:
    """Return a new random id for a request."""
    return secrets.token_hex(8)


def split_into_frames(items: Sequence[Item], *, max_items: int) -> Iterator[list[Item]]:
    """Yield the items, in order, in lists of at most `max_items` that each fit into one frame.

    An item that is too large for a frame gets a list of its own.
    """
    batch: list[Item] = []
    total = 0
    for item in items:
        size = len(msgspec.json.encode(item)) + 1
        if batch and (len(batch) == max_items or total + size > MAX_ITEMS_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(item)
        total += size
    if batch:
        yield batch


class SwarmClient:
    """The coordinator's API for nodes.

    Each request raises RefusedError when the coordinator refuses, UnansweredError without a reply.
    """

    def __init__(self, connection: CoordinatorConnection) -> None:
        self._connection = connection

    @property
    def connected(self) -> bool:
        """Whether there is a connection."""
        return self._connection.connected.is_set()

    async def wait_until_connected(self) -> None:
        """Return as soon as there is a connection."""
        await self._connection.connected.wait()

    async def publish_rollouts(
        self, rollouts: Sequence[Rollout], *, informative: Collection[str] = ()
    ) -> int:
        """Publish rollouts; return how many the pool accepted or already had.

        `informative` has the ids of the rollouts to declare as informative; ids of other rollouts
        are ignored. Declarations and log-probs are left out if the coordinator does not support
        them.
        """
        if not self._connection.supports_logprobs:
            rollouts = [without_logprobs(rollout) for rollout in rollouts]
        accepted = 0
        for batch in split_into_frames(rollouts, max_items=MAX_ROLLOUTS):
            declared = [rollout.id for rollout in batch if rollout.id in informative]
            message = PublishRollouts(
                id=new_id(),
                rollouts=batch,
                informative=declared if self._connection.supports_declarations else [],
            )
            accepted += (await self._connection.request(message, RolloutsPublished)).accepted
        return accepted

    async def request_rollouts(
        self, count: int, *, prefer: Preference = "any", with_logprobs: bool = False
    ) -> list[ExternalRollout]:
        """Return up to `count` rollouts of other owners' nodes, at most MAX_REQUESTED.

        They are drawn by the strategy `prefer`, or `any` if the coordinator does not support
        strategies. `with_logprobs` requests the senders' log-probs too, if the coordinator supports
        them.
        """
        message = RequestRollouts(
            id=new_id(),
            count=min(count, MAX_REQUESTED),
            logprobs=with_logprobs and self._connection.supports_logprobs,
            prefer=prefer if self._connection.supports_declarations else "any",
        )
        return (await self._connection.request(message, RolloutsSampled)).rollouts

    async def request_round(self) -> RoundInfo | None:
        """Return the current judge round; None if there is none."""
        return (await self._connection.request(RequestRound(id=new_id()), RoundState)).round

    async def request_questions(self, number: int) -> QuestionsOffered:
        """Return a round's questions. From now on, a question left unanswered counts as wrong."""
        message = RequestQuestions(id=new_id(), round=number)
        return await self._connection.request(message, QuestionsOffered)

    async def submit_answers(
        self,
        number: int,
        answers: Sequence[AnswerText],
        *,
        on_receipt: Callable[[SignedReceipt], None] = lambda signed: None,
    ) -> AnswersReceived:
        """Submit answers to round `number`, in as many messages as needed.

        Returns one AnswersReceived that lists every answer as accepted, duplicate or rejected; its
        `receipt` is None. `on_receipt` is called with each signed receipt in the coordinator's
        replies. The signatures of the answers are left out if the coordinator does not support
        them. When this raises, earlier messages may have been accepted.
        """
        if not self._connection.supports_signatures:
            answers = [msgspec.structs.replace(answer, signature=None) for answer in answers]
        accepted, duplicate, rejected = list[str](), list[str](), list[Rejected]()
        for batch in split_into_frames(answers, max_items=MAX_ANSWERS):
            message = SubmitAnswers(id=new_id(), round=number, answers=batch)
            received = await self._connection.request(message, AnswersReceived)
            accepted += received.accepted
            duplicate += received.duplicate
            rejected += received.rejected
            if received.receipt is not None:
                on_receipt(received.receipt)
        return AnswersReceived(None, number, accepted, duplicate, rejected)

    async def report_training(self, report: ReportTraining) -> None:
        """Report training figures, without the fields that the coordinator does not know."""
        if not self._connection.supports_provenance:
            report = msgspec.structs.replace(report, used=[], reflection={})
        await self._connection.request(report, TrainingReported)

    async def request_standing(self) -> NodeStanding:
        """Return this node's row of the season's leaderboard."""
        return await self._connection.request(RequestStanding(id=new_id()), NodeStanding)
