"""How many credits of one pair count in a minute, so that two nodes that collude gain little.

A party is an owner, or a node without one: two nodes of one owner count as one. Nodes draw from the
pool uniformly, so in a swarm of twenty or more no honest pair comes near the limit.

Key of season `s` and minute `m` (Unix seconds), with an expiry:
    relay:{s}:pairs:m      hash of `<giver's party>/<taker's party>` to credits until now
"""

from collections.abc import Mapping
from typing import NamedTuple

import redis

MOST_A_MINUTE = 16
# Credits are booked within seconds; while Postgres is away they wait.
_KEPT_S = 3600


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
    pipe = client.pipeline(transaction=False)
    for pair, more in wanted.items():
        pipe.hincrby(_key(pair), f"{pair.giver}/{pair.taker}", more)
    for key in sorted({_key(pair) for pair in wanted}):
        pipe.expire(key, _KEPT_S)
    totals = pipe.execute()[: len(wanted)]
    return {
        pair: min(more, max(0, MOST_A_MINUTE - (total - more)))
        for (pair, more), total in zip(wanted.items(), totals, strict=True)
    }


def _key(pair: PartyPair) -> str:
    return f"relay:{{{pair.season_id}}}:pairs:{pair.minute}"
