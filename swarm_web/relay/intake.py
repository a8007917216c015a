"""The sample of published rollouts that waits in Redis to be archived.

A worker moves the sample to the database. Two limits per minute keep it small: the number of
rollouts of the whole site, and of one node. Each process enforces both limits for itself, and Redis
enforces them across processes.

Keys, all in one slot of a cluster:
    {relay}:samples                     list of encoded samples, oldest first
    {relay}:sampled:<minute>            how many rollouts of this minute were added to the list
    {relay}:sampled:<minute>:<node id>  how many of them are of one node
"""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from random import Random
from typing import cast

import msgspec
import redis
import redis.asyncio

from swarm_protocol.messages import Rollout

logger = logging.getLogger(__name__)

# KEYS: list, count of the site, count of the node. ARGV: both limits, the list's length, samples...
_OFFER = """
local room = math.min(ARGV[1] - (redis.call('GET', KEYS[2]) or 0),
                      ARGV[2] - (redis.call('GET', KEYS[3]) or 0), #ARGV - 3)
if room <= 0 then return 0 end
for i = 4, 3 + room do
    redis.call('RPUSH', KEYS[1], ARGV[i])
end
redis.call('LTRIM', KEYS[1], -ARGV[3], -1)
for i = 2, 3 do
    redis.call('INCRBY', KEYS[i], room)
    redis.call('EXPIRE', KEYS[i], 120)
end
return room
"""

_LIST = "{relay}:samples"
# If no worker takes the samples, the oldest are dropped.
_MAX_WAITING = 1000
# The maximum size of a sample: a quarter of the relay's limit, and more than most rollouts.
_MAX_BYTES = 1 << 15


@dataclass(frozen=True)
class SampleLimits:
    """How many rollouts may be archived per minute: from the whole site, and from each node."""

    site: int
    node: int


class ArchiveSample(msgspec.Struct, frozen=True):
    """A published rollout to be archived; `at` is Unix seconds."""

    season_id: int
    node_id: int
    at: float
    rollout: Rollout


class SampleQuota:
    """Selects the rollouts that one process offers to the archive, within limits per minute."""

    def __init__(self, limits: SampleLimits) -> None:
        self._limits = limits
        self._minute = 0
        self._taken: Counter[int] = Counter()
        self._left = 0

    def choose(
        self, node_id: int, ids: Sequence[str], *, now: float, random: Random
    ) -> Collection[str]:
        """Choose which of a node's rollouts to offer to the archive. Return their ids.

        The site and each node have a limit per minute. As many of `ids` are chosen as both limits
        allow at `now` (Unix seconds), and they count towards the limits. They are drawn at random,
        because a node chooses the order in which it sends its rollouts.
        """
        minute = int(now // 60)
        if minute != self._minute:
            self._minute, self._left = minute, self._limits.site
            self._taken.clear()
        count = min(len(ids), self._left, self._limits.node - self._taken[node_id])
        if count <= 0:
            return ()
        self._left -= count
        self._taken[node_id] += count
        return random.sample(ids, count)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(ArchiveSample)


async def offer_samples(
    client: redis.asyncio.Redis, samples: Sequence[ArchiveSample], *, limits: SampleLimits
) -> int:
    """Append rollouts of one node to the list in Redis, in order, until a limit is reached.

    Returns how many were appended. Rollouts larger than _MAX_BYTES are skipped. Limits are per
    minute. All rollouts of a call count for the minute in which the first one was published.
    """
    encoded = [_encoder.encode(sample) for sample in samples[: limits.node]]
    fitting = [sample for sample in encoded if len(sample) <= _MAX_BYTES]
    if not fitting:
        return 0
    count = f"{{relay}}:sampled:{int(samples[0].at // 60)}"
    keys = [_LIST, count, f"{count}:{samples[0].node_id}"]
    args: list[int | bytes] = [limits.site, limits.node, _MAX_WAITING, *fitting]
    return int(await client.register_script(_OFFER)(keys=keys, args=args))


def take_samples(client: redis.Redis, *, limit: int) -> list[ArchiveSample]:
    """Take up to `limit` samples off the list in Redis, and return the readable ones, oldest first.

    A sample is unreadable if another version of the site wrote it in another format.
    """
    taken = cast("list[bytes] | None", client.lpop(_LIST, limit))
    samples = []
    for packed in taken or []:
        try:
            samples.append(_decoder.decode(packed))
        except msgspec.DecodeError:
            logger.warning("ignored an unreadable rollout to be archived", exc_info=True)
    return samples
