"""The queue of rollouts to check; also nodes' hand-out weights and lapsed declarations in Redis.

A web process draws the rollouts to check at random from its pool (`SeasonPool.choose_checks`). So
the more rollouts a node has in the pool, the more often it is checked, and it cannot avoid checks
by timing or counting.

Key of season `s`, with an expiry (`relay.hub` lists the other keys):
    relay:{s}:checked    sorted set of the rollouts taken for checks, `<key>@<digest of the body>`,
                         scored by the time when they were taken
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import msgspec
import redis

from swarm_protocol.messages import Rollout
from swarm_web.relay.keys import CHECKS, season_key

logger = logging.getLogger(__name__)

# The worker writes these keys every few seconds; those of an ended season expire.
_EXPIRY_S = 86_400


class Check(msgspec.Struct, array_like=True, frozen=True):
    """A rollout to be checked; `declared` is whether its node declared it informative.

    `key` (`entries.Entry.key`) and `body`, its JSON, identify the rollout. Its publication time
    would not: each web process converts it to its own clock (`relay.replica`).
    """

    season_id: int
    node_id: int
    key: str
    body: bytes
    declared: bool = True

    def read_rollout(self) -> Rollout:
        """Return the rollout."""
        return msgspec.json.decode(self.body, type=Rollout)


_decoder = msgspec.msgpack.Decoder(Check)


def take_checks(client: redis.Redis, limit: int, *, now: float, max_age_s: int) -> list[Check]:
    """Take up to `limit` rollouts off the queue, and return those that were not taken before.

    A rollout may be queued several times while it is in the pool. If it were checked twice, one
    mistake would count twice. So taken rollouts are remembered for `max_age_s` seconds, the longest
    time that a rollout stays in the pool. If a node publishes another rollout under the same id,
    its body differs, so it is not mistaken for the earlier one. Unreadable rollouts are dropped.
    `now` is Unix seconds.
    """
    taken = cast("list[bytes] | None", client.lpop(CHECKS, limit))
    by_season: defaultdict[int, list[Check]] = defaultdict(list)
    for packed in taken or []:
        try:
            check = _decoder.decode(packed)
        except msgspec.DecodeError:
            logger.warning("ignored an unreadable rollout to be checked", exc_info=True)
        else:
            by_season[check.season_id].append(check)
    return [
        check
        for season_id, checks in by_season.items()
        for check in _skip_checked(client, season_id, checks, now=now, max_age_s=max_age_s)
    ]


def _skip_checked(
    client: redis.Redis, season_id: int, checks: Sequence[Check], *, now: float, max_age_s: int
) -> list[Check]:
    key = season_key(season_id, "checked")
    with client.pipeline(transaction=False) as pipeline:
        for check in checks:
            digest = hashlib.blake2b(check.body, digest_size=16).hexdigest()
            pipeline.zadd(key, {f"{check.key}@{digest}": now}, nx=True)
        pipeline.zremrangebyscore(key, "-inf", now - max_age_s)
        pipeline.expire(key, max_age_s)
        *added, _, _ = pipeline.execute()
    return [check for check, new in zip(checks, added, strict=True) if new]


def set_lapsed(client: redis.Redis, season_id: int, node_ids: Collection[int]) -> None:
    """Replace the stored ids of the nodes whose declarations do not count.

    Web processes read the ids within a second. In their pools, no rollout of these nodes then
    counts as declared informative.
    """
    key = season_key(season_id, "lapsed")
    with client.pipeline(transaction=True) as pipeline:
        pipeline.delete(key)
        if node_ids:
            pipeline.sadd(key, *node_ids)
            pipeline.expire(key, _EXPIRY_S)
        pipeline.execute()


def set_weights(client: redis.Redis, season_id: int, weights: Mapping[int, float]) -> None:
    """Set the hand-out weights, by node id; nodes that are not in `weights` get weight 1."""
    key = season_key(season_id, "weights")
    with client.pipeline(transaction=True) as pipeline:
        pipeline.delete(key)
        if weights:
            pipeline.hset(key, mapping={str(node): weight for node, weight in weights.items()})
            pipeline.expire(key, _EXPIRY_S)
        pipeline.execute()
