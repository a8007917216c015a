"""Rollouts to and from the pool, and how training goes."""

import msgspec

from judge.models import Season
from judge.selectors import task_choices
from swarm_protocol.errors import FIXES, ErrorCode, RefusedError
from swarm_protocol.messages import (
    MAX_ROLLOUT_BYTES,
    PublishRollouts,
    Rejected,
    ReportTraining,
    RequestRollouts,
    Rollout,
    RolloutsPublished,
    RolloutsSampled,
    TrainingReported,
)
from swarm_tasks.allowlist import check_training_spec
from swarm_web import counters
from swarm_web.gateway.arms import assign_arm
from swarm_web.gateway.handlers.season import find_season
from swarm_web.gateway.session import Session
from swarm_web.refusals import note_refusal
from swarm_web.relay.services import publish_rollouts, record_training, sample_rollouts

# More characters than tokens have on average in any text: the server knows no node's tokenizer.
TOKEN_CHARACTERS = 32


async def publish(session: Session, message: PublishRollouts) -> RolloutsPublished:
    """Offer the rollouts of this season to the others, and tell which were none."""
    season = await find_season(session)
    if await assign_arm(session, season) == "isolated" and not season.isolated_publish:
        return await _decline(session, message)
    taken, rejected = _sort_rollouts(message.rollouts, season)
    for item in rejected:
        await counters.count(counters.REFUSED, item.code)
        await note_refusal(
            session.node.pk, code=item.code, message=item.message, now=session.clock()
        )
    await publish_rollouts(
        session.node,
        season_id=season.pk,
        rollouts=taken,
        informative=message.informative,
        rejected=len(rejected),
        now=session.clock(),
        random=session.random,
    )
    return RolloutsPublished(reply_to=message.id, accepted=len(taken), rejected=rejected)


async def _decline(session: Session, message: PublishRollouts) -> RolloutsPublished:
    """Take no rollouts of an isolated node, and count them, but not as a fault of the node's.

    Older clients send them with each step: rejected one by one, they neither end the connection nor
    stand in the panel, and on the node's page they would push out what its owner can mend.
    """
    code = ErrorCode.RELAY_ISOLATED_PUBLISH
    await counters.count(counters.REFUSED, code, by=len(message.rollouts))
    reason = f"{session.node.name} is in the isolated arm"
    rejected = [Rejected(rollout.id, code, reason, FIXES[code]) for rollout in message.rollouts]
    return RolloutsPublished(reply_to=message.id, accepted=0, rejected=rejected)


def _sort_rollouts(rollouts: list[Rollout], season: Season) -> tuple[list[Rollout], list[Rejected]]:
    """Return the rollouts whose task is one of the season's, and the refusals of the others."""
    tasks = task_choices(season.tasks)
    taken: list[Rollout] = []
    rejected: list[Rejected] = []
    for rollout in rollouts:
        try:
            _check_size(rollout, season)
            check_training_spec(rollout.task, seed=season.seed, tasks=tasks)
        except RefusedError as refusal:
            rejected.append(
                Rejected(
                    item=rollout.id,
                    code=refusal.code,
                    message=refusal.message,
                    fix=refusal.fix,
                )
            )
        else:
            taken.append(rollout)
    return taken, rejected


def _check_size(rollout: Rollout, season: Season) -> None:
    """Refuse what no node of the season trains on, or may share; receivers count tokens."""
    size = len(msgspec.json.encode(rollout))
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


async def sample(session: Session, message: RequestRollouts) -> RolloutsSampled:
    """Draw rollouts of others."""
    season = await find_season(session)
    arm = await assign_arm(session, season)
    if arm != "swarm":
        raise RefusedError(ErrorCode.RELAY_ISOLATED, f"{session.node.name} is in the {arm} arm")
    drawn = await sample_rollouts(
        session.node,
        season_id=season.pk,
        count=message.count,
        prefer=message.prefer,
        with_logprobs=message.logprobs,
        now=session.clock(),
        random=session.random,
    )
    return RolloutsSampled(reply_to=message.id, rollouts=drawn)


async def report_training(session: Session, message: ReportTraining) -> TrainingReported:
    """Store how training goes."""
    season = await find_season(session)
    await record_training(session.node, season_id=season.pk, report=message, now=session.clock())
    return TrainingReported(reply_to=message.id)
