"""Operations of nodes and processes on a season's pool, flushed to the stores immediately."""

from collections.abc import Collection, Sequence
from datetime import datetime
from random import Random

import msgspec

from judge.models import Season
from swarm_protocol.codec import MAX_FRAME_BYTES
from swarm_protocol.messages import ExternalRollout, ReportTraining, Rollout
from swarm_tasks.keyspace import Part
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import DrawnTask, Verifier
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.hub import hub
from swarm_web.relay.keys import CHECKS
from swarm_web.relay.season_pool import EncodedRollout
from swarm_web.relay.window import Strategy


def draw_task(
    verifier: Verifier, season: Season, *, counter: int = 0, part: Part = Part.TRAINING
) -> DrawnTask:
    """Draw a task of the starter mix's first dataset."""
    sums = STARTER_TASKS[0]
    return verifier.draw(
        key=b"k",
        part=part,
        dataset=sums.dataset,
        config=sums.config,
        seed=season.seed,
        counter=counter,
    )


async def publish_rollouts(
    node: Node,
    *,
    season_id: int,
    rollouts: Sequence[Rollout],
    informative: Collection[str] = (),
    rejected: int = 0,
    now: datetime,
    random: Random | None = None,
) -> list[str]:
    """Publish rollouts of a node."""
    pool = await hub().open(season_id)
    published = pool.publish(
        await hub().join(pool, node),
        [EncodedRollout(rollout, msgspec.json.encode(rollout)) for rollout in rollouts],
        informative=informative,
        rejected=rejected,
        now=now.timestamp(),
        random=random or Random(0),
    )
    await hub().flush()
    return published


async def sample_rollouts(
    node: Node,
    *,
    season_id: int,
    count: int,
    prefer: str = "any",
    with_logprobs: bool = False,
    now: datetime,
    random: Random | None = None,
) -> list[ExternalRollout]:
    """Draw rollouts for a node and decode them as it does."""
    pool = await hub().open(season_id)
    drawn = pool.draw(
        await hub().join(pool, node),
        count,
        strategy=Strategy(prefer),
        with_logprobs=with_logprobs,
        max_bytes=MAX_FRAME_BYTES - 1024,
        now=now.timestamp(),
        random=random or Random(0),
    )
    await hub().flush()
    return msgspec.json.decode(msgspec.json.encode(drawn), type=list[ExternalRollout])


async def record_training(
    node: Node, *, season_id: int, report: ReportTraining, now: datetime
) -> None:
    """Record a training report of a node."""
    pool = await hub().open(season_id)
    pool.report(await hub().join(pool, node), report, now=now.timestamp())
    await hub().flush()


async def offer_checks(season_id: int, most: int, *, arbitrary: int = 0, now: datetime) -> None:
    """Offer the worker up to `limit` declared rollouts and `arbitrary` other ones for checking.

    In production the hub does this every few seconds.
    """
    pool = await hub().open(season_id)
    checks = pool.choose_checks(
        declared=most, arbitrary=arbitrary, now=now.timestamp(), random=Random(0)
    )
    for check in checks:
        await async_redis().rpush(CHECKS, msgspec.msgpack.encode(check))


async def read_findings(season_id: int) -> None:
    """Read the worker's findings, as the hub does twice per second."""
    await hub().open(season_id)
    await hub().refresh()
