"""Handlers for publishing and requesting rollouts, and for training reports."""

from collections.abc import Collection

import msgspec

from judge.models import Season
from swarm_protocol.codec import MAX_FRAME_BYTES
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    MAX_ROLLOUT_BYTES,
    PublishRollouts,
    Rejected,
    ReportTraining,
    RequestRollouts,
    Rollout,
    RolloutsPublished,
    ServerMessage,
    TrainingReported,
)
from swarm_tasks.allowlist import check_training_spec
from swarm_web.core import counters
from swarm_web.core.refusals import record_refusal
from swarm_web.gateway.arms import assign_arm
from swarm_web.gateway.handlers.season import find_season
from swarm_web.gateway.session import Session
from swarm_web.relay.season_pool import EncodedRollout, RelayedRollout
from swarm_web.relay.window import Strategy

# More characters than a token has on average in ordinary text; the server does not know the
# tokenizer. Long runs of spaces may exceed it.
TOKEN_CHARACTERS = 32
# The bytes of a frame besides its rollouts.
_FRAME_OVERHEAD_BYTES = 1024

_encoder = msgspec.json.Encoder()


class RelayedRollouts(ServerMessage, frozen=True, tag="rollouts.sampled"):
    """A RolloutsSampled whose rollouts are already encoded."""

    rollouts: list[RelayedRollout]


async def publish_rollouts(session: Session, message: PublishRollouts) -> RolloutsPublished:
    """Add rollouts to the pool; return how many were accepted, and which were rejected and why.

    Rollouts that the season's rules do not allow, and copies of rollouts in the pool, are rejected.
    So are all rollouts of an isolated node if the season does not let isolated nodes publish.
    Raises RefusedError if no season is running.
    """
    season = await find_season(session)
    if await assign_arm(session, season) == "isolated" and not season.isolated_publish:
        return _reject_all(session, message)
    pool, member = await session.join_pool(season)
    valid, rejected = _check_rollouts(message.rollouts, season)
    copies = pool.publish(
        member,
        valid,
        informative=frozenset(message.informative),
        rejected=len(rejected),
        now=session.clock().timestamp(),
        random=session.random,
    )
    session.shared.hub.wake()
    reason = "its completions are those of another rollout in the pool, or nearly so"
    rejected += _reject(copies, RefusedError(ErrorCode.RELAY_COPY, reason))
    for item in rejected:
        counters.count(counters.REFUSED, item.code)
        record_refusal(session.node.pk, code=item.code, message=item.message, now=session.clock())
    accepted = len(valid) - len(copies)
    return RolloutsPublished(reply_to=message.id, accepted=accepted, rejected=rejected)


def _reject_all(session: Session, message: PublishRollouts) -> RolloutsPublished:
    """Reject all rollouts of an isolated node, and keep the connection.

    Older clients of isolated nodes still send rollouts at each step. The node's page does not show
    these rejections, because they would displace errors that the owner can fix.
    """
    code = ErrorCode.RELAY_ISOLATED_PUBLISH
    counters.count(counters.REFUSED, code, by=len(message.rollouts))
    refusal = RefusedError(code, f"{session.node.name} is in the isolated arm")
    rejected = _reject([rollout.id for rollout in message.rollouts], refusal)
    return RolloutsPublished(reply_to=message.id, accepted=0, rejected=rejected)


def _reject(ids: Collection[str], refusal: RefusedError) -> list[Rejected]:
    return [Rejected(each, refusal.code, refusal.message, refusal.fix) for each in ids]


def _check_rollouts(
    rollouts: list[Rollout], season: Season
) -> tuple[list[EncodedRollout], list[Rejected]]:
    """Return the rollouts that the season's rules allow, and the rejections of the others."""
    valid: list[EncodedRollout] = []
    rejected: list[Rejected] = []
    for rollout in rollouts:
        try:
            body = _encoder.encode(rollout)
            _check_size(rollout, len(body), season)
            check_training_spec(rollout.task, seed=season.seed, tasks=season.choices)
        except RefusedError as refusal:
            rejected += _reject([rollout.id], refusal)
        else:
            valid.append(EncodedRollout(rollout, body))
    return valid, rejected


def _check_size(rollout: Rollout, size: int, season: Season) -> None:
    """Raise RefusedError if a rollout, encoded in `size` bytes, is too large to share or train on.

    Completions are limited in characters; receivers, which know the tokenizer, count tokens.
    """
    if size > MAX_ROLLOUT_BYTES:
        raise RefusedError(
            ErrorCode.PROTOCOL_TOO_LARGE,
            f"the rollout has {size} bytes, at most {MAX_ROLLOUT_BYTES} are shared",
        )
    if len(rollout.completions) > season.completions:
        raise RefusedError(
            ErrorCode.RELAY_ROLLOUT,
            f"the rollout has {len(rollout.completions)} completions, others train on at most"
            f" {season.completions}",
        )
    longest = max(len(completion.text) for completion in rollout.completions)
    if longest > season.max_new_tokens * TOKEN_CHARACTERS:
        raise RefusedError(
            ErrorCode.RELAY_ROLLOUT,
            f"a completion has {longest} characters, too many for {season.max_new_tokens} tokens",
        )


async def draw_rollouts(session: Session, message: RequestRollouts) -> RelayedRollouts:
    """Return up to `message.count` rollouts of other parties (`Node.party`), drawn from the pool.

    Raises RefusedError if no season is running, the node is not in the swarm arm, or the season
    does not allow the sampling strategy `message.prefer`.
    """
    season = await find_season(session)
    arm = await assign_arm(session, season)
    if arm != "swarm":
        raise RefusedError(ErrorCode.RELAY_ISOLATED, f"{session.node.name} is in the {arm} arm")
    if message.prefer not in season.sampling:
        allowed = ", ".join(season.sampling)
        problem = f"the season draws rollouts by {allowed}, not by {message.prefer}"
        raise RefusedError(ErrorCode.RELAY_SAMPLING, problem)
    pool, member = await session.join_pool(season)
    drawn = pool.draw(
        member,
        message.count,
        strategy=Strategy(message.prefer),
        with_logprobs=message.logprobs,
        max_bytes=MAX_FRAME_BYTES - _FRAME_OVERHEAD_BYTES,
        now=session.clock().timestamp(),
        random=session.random,
    )
    session.shared.hub.wake()
    return RelayedRollouts(reply_to=message.id, rollouts=drawn)


async def report_training(session: Session, message: ReportTraining) -> TrainingReported:
    """Record a node's training report. Raises RefusedError if no season is running."""
    season = await find_season(session)
    pool, member = await session.join_pool(season)
    pool.report(member, message, now=session.clock().timestamp())
    session.shared.hub.wake()
    return TrainingReported(reply_to=message.id)
