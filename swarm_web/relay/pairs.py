"""The limit of credits per pair of parties and minute, so that colluding nodes gain little.

A party is an owner, or a node without an owner: all nodes of an owner count as one party. Nodes
draw from the pool almost uniformly, so in a swarm of twenty or more nodes, two honest nodes of
different parties stay below the limit. Two owners with several nodes each may exceed it.

Key of season `s` and minute `m` (Unix seconds), with an expiry: `relay:{s}:pairs:m` is a hash of
`<giver's party>/<taker's party>` to the credits so far.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, cast

import redis

from swarm_web.relay.keys import season_key

MAX_PER_MINUTE = 16
# Seconds since the last booking. If Postgres was away, credits of the same minute that are booked
# later than this get a limit of their own. A longer time would need much memory: with 70,000 nodes
# there are half a million pairs a minute.
_EXPIRY_S = 180
# Per call: Redis serves no other client while a script runs.
_PAIR_BATCH = 1000

# KEYS: the hash of a minute. ARGV: seconds to keep it, then (field, credits)... Returns the totals.
_ADD = """
local totals = {}
for i = 2, #ARGV, 2 do
    totals[i / 2] = redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return totals
"""


class PartyPair(NamedTuple):
    """Two parties (`Node.party`) in one minute of a season: `taker` used rollouts of `giver`.

    `minute` is the minute's start in Unix seconds.
    """

    season_id: int
    minute: int
    giver: str
    taker: str


def admit_credits(client: redis.Redis, requested: Mapping[PartyPair, int]) -> dict[PartyPair, int]:
    """Record the credits requested for each pair. Return how many are admitted, by pair.

    The limit is MAX_PER_MINUTE for each pair, including credits recorded by earlier calls. If the
    caller fails afterwards and repeats the call, the credits are recorded twice, so fewer may be
    admitted. Raises the errors of the Redis client.
    """
    add = client.register_script(_ADD)
    by_minute: defaultdict[str, list[PartyPair]] = defaultdict(list)
    for pair in requested:
        by_minute[season_key(pair.season_id, f"pairs:{pair.minute}")].append(pair)
    admitted: dict[PartyPair, int] = {}
    for key, pairs in by_minute.items():
        for first in range(0, len(pairs), _PAIR_BATCH):
            some = pairs[first : first + _PAIR_BATCH]
            args = [_EXPIRY_S, *(each for pair in some for each in (_field(pair), requested[pair]))]
            totals = cast("list[int]", add(keys=[key], args=args))
            for pair, total in zip(some, totals, strict=True):
                before = total - requested[pair]
                admitted[pair] = min(requested[pair], max(0, MAX_PER_MINUTE - before))
    return admitted


def _field(pair: PartyPair) -> str:
    return f"{pair.giver}/{pair.taker}"
