"""Hubs, one for each web process of a site, and helpers for the nodes that use them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import msgspec
import redis.asyncio

from swarm_protocol.codec import MAX_FRAME_BYTES
from swarm_protocol.messages import Completion, ReportTraining, Rollout, RolloutName, TaskSpec
from swarm_web.core.store import async_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.hub import Hub, read_bounds
from swarm_web.relay.season_pool import EncodedRollout, Member, SeasonPool
from swarm_web.relay.window import Strategy
from tests.processes import POLL_S
from tests.sockets import PATIENCE_S

NOW = 1_700_000_000.0


def make_hub(
    client: redis.asyncio.Redis | None = None,
    *,
    clock: Callable[[], float] = lambda: NOW,
    **bounds: Any,
) -> Hub:
    """Return the hub of another web process of the site."""
    return Hub(client or async_redis(), replace(read_bounds(), **bounds), clock=clock)


@contextlib.asynccontextmanager
async def running(*hubs: Hub) -> AsyncIterator[None]:
    """Close the hubs at the end of the block."""
    yield
    for each in hubs:
        await each.close()


def make_rollout(name: str, *, text: str = "x") -> Rollout:
    """Return a rollout; with a short text it is too short to be compared with others."""
    half = len(text) // 2
    texts = [text[:half], text[half:]] if len(set(text)) > 1 else [text, text]
    completions = [Completion(each, "stop") for each in texts]
    return Rollout(name, TaskSpec("gcd", {}, 1, 1, "test"), completions, "tiny", 1, "chars")


def with_logprobs(rollout: Rollout) -> Rollout:
    """Return the rollout with log-probs in its completions."""
    full = [
        msgspec.structs.replace(each, logprobs="AAIABA==", logprob=-0.5)
        for each in rollout.completions
    ]
    return msgspec.structs.replace(rollout, completions=full)


def publish(
    pool: SeasonPool,
    member: Member,
    *names: str,
    informative: Collection[str] = (),
    text: str = "x",
    now: float = NOW,
) -> list[str]:
    """Publish rollouts of a node."""
    rollouts = [make_rollout(name, text=text) for name in names]
    offered = [EncodedRollout(rollout, msgspec.json.encode(rollout)) for rollout in rollouts]
    return pool.publish(
        member, offered, informative=informative, rejected=0, now=now, random=Random(0)
    )


def draw(pool: SeasonPool, member: Member, count: int = 64, *, now: float = NOW) -> list[str]:
    """Draw for a node and return the sorted keys of its rollouts."""
    drawn = pool.draw(
        member,
        count,
        strategy=Strategy.ANY,
        with_logprobs=False,
        max_bytes=MAX_FRAME_BYTES,
        now=now,
        random=Random(0),
    )
    return sorted(f"{each.node}/{msgspec.json.decode(each.rollout)['id']}" for each in drawn)


def report(pool: SeasonPool, member: Member, *used: str, step: int = 1, now: float = NOW) -> None:
    """Report that a node trained on rollouts, each named `<node>/<id>`."""
    names = [RolloutName(*name.split("/")) for name in used]
    pool.report(member, make_report(step=step, used=names), now=now)


def make_report(
    *, step: int = 1, used: Sequence[RolloutName] = (), **fields: Any
) -> ReportTraining:
    """Return a training report."""
    known = {"training_reward": 0.5, "informative_share": 0.5, "local_used": 1, "external_used": 0}
    return ReportTraining(id="t", step=step, used=list(used), **{**known, **fields})


async def join(hub: Hub, season_id: int, *nodes: Node) -> tuple[SeasonPool, list[Member]]:
    """Open a season's pool, and return it with the nodes as its members."""
    pool = await hub.open(season_id)
    return pool, [await hub.join(pool, node) for node in nodes]


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition that another task fulfils is true."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - no event for it
            await asyncio.sleep(POLL_S)
