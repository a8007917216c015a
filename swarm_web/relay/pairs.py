"""How many credits of one pair count in a minute, so that two nodes that collude gain little.

A party is an owner, or a node without one: two nodes of one owner count as one. Nodes draw from the
pool uniformly, so in a swarm of twenty or more no honest pair comes near the limit.

Key of season `s` and minute `m` (Unix seconds), with an expiry:
    relay:{s}:pairs:m      hash of `<giver's party>/<taker's party>` to credits until now
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple, cast

import redis

MOST_A_MINUTE = 16
# Since the last booking, seconds after the minute. Credits of the minute that are booked later than
# this after the others, because Postgres was away, have a limit of their own. A longer time would
# take much memory: with 70,000 nodes there are half a million pairs a minute.
_KEPT_S = 180
# Of one call: Redis answers nobody else while a script runs.
_PAIRS_AT_ONCE = 1000

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
    """Who gave and who took in a minute of a season, which begins at `minute` (Unix seconds)."""

    season_id: int
    minute: int
    giver: str
    taker: str


def admit(client: redis.Redis, wanted: Mapping[PartyPair, int]) -> dict[PartyPair, int]:
    """Note the credits that pairs want, and return how many of each count.

    What was noted stays noted, so credits that could not be booked and come again may count less.
    """
    add = client.register_script(_ADD)
    by_minute: defaultdict[str, list[PartyPair]] = defaultdict(list)
    for pair in wanted:
        by_minute[_key(pair)].append(pair)
    admitted: dict[PartyPair, int] = {}
    for key, pairs in by_minute.items():
        for first in range(0, len(pairs), _PAIRS_AT_ONCE):
            some = pairs[first : first + _PAIRS_AT_ONCE]
            args = [_KEPT_S, *(each for pair in some for each in (_field(pair), wanted[pair]))]
            totals = cast("list[int]", add(keys=[key], args=args))
            for pair, total in zip(some, totals, strict=True):
                before = total - wanted[pair]
                admitted[pair] = min(wanted[pair], max(0, MOST_A_MINUTE - before))
    return admitted


def _field(pair: PartyPair) -> str:
    return f"{pair.giver}/{pair.taker}"


def _key(pair: PartyPair) -> str:
    return f"relay:{{{pair.season_id}}}:pairs:{pair.minute}"
