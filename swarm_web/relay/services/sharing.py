"""Rollouts are shared and drawn, a sample of them is archived, and who gave and took is counted.

The calls are async, because they are made for every step of every node.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from random import Random

import msgspec
from django.conf import settings

from swarm_protocol.codec import MAX_FRAME_BYTES
from swarm_protocol.logprobs import without_logprobs
from swarm_protocol.messages import ExternalRollout, Preference, Rollout, RolloutName
from swarm_web.nodes.models import Node
from swarm_web.relay.deliveries import Deliveries
from swarm_web.relay.intake import Sample, SampleLimits, offer_samples
from swarm_web.relay.pool import Bounds, Pool, Pooled
from swarm_web.relay.services.contributions import add_to_contribution
from swarm_web.store import async_redis

# What stands around the rollouts in a frame.
_FRAME_REST_BYTES = 1024

_decoder = msgspec.json.Decoder(ExternalRollout)
_encoder = msgspec.json.Encoder()


async def publish_rollouts(
    node: Node,
    *,
    season_id: int,
    rollouts: Sequence[Rollout],
    informative: Collection[str] = (),
    rejected: int,
    now: datetime,
    random: Random,
) -> None:
    """Offer a node's rollouts to the others, and count them and those that were rejected.

    `informative` are the ids that the node declares so. Publishing a rollout again while it is in
    the pool changes nothing.
    """
    shared = {
        rollout.id: _encoder.encode(ExternalRollout(node=node.name, age_s=0.0, rollout=rollout))
        for rollout in rollouts
    }
    pool = _season_pool(season_id)
    added = 0
    if shared:
        declared = frozenset(informative)
        added = await pool.publish(node.pk, shared, informative=declared, now=now.timestamp())
    if added:
        # Nodes send what they found informative first: the archive is to show what is usual.
        sampled = random.sample(rollouts, min(len(rollouts), settings.RELAY_ARCHIVE_PER_NODE))
        await _offer_samples(node, season_id=season_id, rollouts=sampled, now=now)
    await add_to_contribution(node, season_id, published=added, rejected=rejected)


async def sample_rollouts(
    node: Node,
    *,
    season_id: int,
    count: int,
    now: datetime,
    random: Random,
    prefer: Preference = "any",
    with_logprobs: bool = False,
) -> list[ExternalRollout]:
    """Draw up to `count` rollouts of other nodes uniformly, and count them for both sides.

    With a preference for `informative` ones, those that are declared so come first (`Pool.sample`).
    They come in random order. One that no longer fits into the frame is left out, and smaller ones
    after it still come: large rollouts of one node must not keep out those of all others.
    Log-probs are for nodes that ask for them: an older client would refuse the whole frame.
    """
    pool = _season_pool(season_id)
    drawn = await pool.sample(
        count, excluding=node.pk, prefer=prefer, now=now.timestamp(), random=random
    )
    fitting, left = [], MAX_FRAME_BYTES - _FRAME_REST_BYTES
    for pooled in drawn:
        external = _unpack(pooled, with_logprobs=with_logprobs)
        size = len(_encoder.encode(external)) + 1
        if size < left:
            left -= size
            fitting.append((pooled.node_id, external))
    if fitting:
        # In Redis: rows of many others in Postgres, for each step of each node, are too many.
        await pool.count_given(Counter(node_id for node_id, _ in fitting))
        names = [RolloutName(external.node, external.rollout.id) for _, external in fitting]
        deliveries = Deliveries(async_redis(), season_id=season_id, taker_id=node.pk)
        await deliveries.remember(names, now=now.timestamp())
    await add_to_contribution(node, season_id, delivered=len(fitting))
    return [external for _, external in fitting]


async def _offer_samples(
    node: Node, *, season_id: int, rollouts: Sequence[Rollout], now: datetime
) -> None:
    """Let the archive have some of them; verdicts need no log-probs."""
    limits = SampleLimits(
        site=settings.RELAY_ARCHIVE_PER_MINUTE, node=settings.RELAY_ARCHIVE_PER_NODE
    )
    samples = [
        Sample(season_id, node.pk, now.timestamp(), without_logprobs(rollout))
        for rollout in rollouts
    ]
    await offer_samples(async_redis(), samples, limits=limits)


def _unpack(pooled: Pooled, *, with_logprobs: bool) -> ExternalRollout:
    external = _decoder.decode(pooled.blob)
    rollout = external.rollout if with_logprobs else without_logprobs(external.rollout)
    return msgspec.structs.replace(external, rollout=rollout, age_s=round(pooled.age_s, 3))


def _season_pool(season_id: int) -> Pool:
    bounds = Bounds(
        size=settings.RELAY_POOL_SIZE,
        per_node=settings.RELAY_ROLLOUTS_PER_NODE,
        max_age_s=settings.RELAY_MAX_AGE_S,
    )
    return Pool(async_redis(), season_id=season_id, bounds=bounds)
