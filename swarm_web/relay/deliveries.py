"""Which rollouts were delivered to whom, in Redis: only for these is anybody credited.

A node says which rollouts it trained on. It is believed for those that it got lately, each once,
also when the pool gives it the same rollout again.

Keys of season `s` and the node that took, all with an expiry:
    relay:s:got:<id>     sorted set of `<giver's name>/<rollout id>`, scored by time
    relay:s:told:<id>    the same of what it has told already
    relay:credits        list of credits that a worker is to book, for all seasons
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self, cast

import redis
import redis.asyncio

from swarm_protocol.messages import RolloutName

# A node reports each second at most, so what it trained on is among the latest deliveries; an hour
# is for one that lost its connection meanwhile.
REMEMBERED = 256
REMEMBERED_S = 3600

# KEYS: got, told. ARGV: now, most, seconds, names...
_REMEMBER = """
for i = 4, #ARGV do
    if not redis.call('ZSCORE', KEYS[2], ARGV[i]) then
        redis.call('ZADD', KEYS[1], ARGV[1], ARGV[i])
    end
end
redis.call('ZREMRANGEBYRANK', KEYS[1], 0, -1 - ARGV[2])
redis.call('EXPIRE', KEYS[1], ARGV[3])
"""

# KEYS: got, told, credits. ARGV: now, most, seconds, prefix of a credit, names...
_CREDIT = """
local credited = 0
for i = 5, #ARGV do
    if redis.call('ZREM', KEYS[1], ARGV[i]) == 1 then
        redis.call('ZADD', KEYS[2], ARGV[1], ARGV[i])
        redis.call('RPUSH', KEYS[3], ARGV[4] .. ARGV[i])
        credited = credited + 1
    end
end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[3])
redis.call('LTRIM', KEYS[3], -200000, -1) -- should no worker ever take them
return credited
"""

_CREDITS = "relay:credits"


class Credit(NamedTuple):
    """A node trained on a rollout that was delivered to it; `giver` is a name."""

    season_id: int
    taker_id: int
    at: datetime
    giver: str
    rollout: str

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Read what `write` or `Deliveries.credit` wrote; no id holds a slash."""
        season, taker, at, name = line.decode().split("/", 3)
        giver, rollout = name.rsplit("/", 1)
        return cls(int(season), int(taker), datetime.fromtimestamp(int(at), UTC), giver, rollout)

    def write(self) -> str:
        """Return the line that `read` reads."""
        return "/".join(
            (
                *(str(self.season_id), str(self.taker_id), str(int(self.at.timestamp()))),
                *(self.giver, self.rollout),
            )
        )


class Deliveries:
    """What one node was given in a season. Times are Unix seconds, passed in by the caller."""

    def __init__(self, client: redis.asyncio.Redis, *, season_id: int, taker_id: int) -> None:
        self._got = f"relay:{season_id}:got:{taker_id}"
        self._told = f"relay:{season_id}:told:{taker_id}"
        self._prefix = f"{season_id}/{taker_id}"
        self._remember = client.register_script(_REMEMBER)
        self._credit = client.register_script(_CREDIT)

    async def remember(self, names: Iterable[RolloutName], *, now: float) -> None:
        """Note that these rollouts were given to the node just now."""
        args: list[str | float] = [now, REMEMBERED, REMEMBERED_S, *map(_write, names)]
        await self._remember(keys=[self._got, self._told], args=args)

    async def credit(self, names: Iterable[RolloutName], *, now: float) -> int:
        """Credit the rollouts that the node says it used, and return how many it was believed."""
        prefix = f"{self._prefix}/{int(now)}/"
        args: list[str | float] = [now, REMEMBERED, REMEMBERED_S, prefix, *map(_write, names)]
        return int(await self._credit(keys=[self._got, self._told, _CREDITS], args=args))


def take_credits(client: redis.Redis, *, most: int) -> list[Credit]:
    """Take up to `most` credits, oldest first, off the list."""
    taken = cast("list[bytes] | None", client.lpop(_CREDITS, most))
    return [Credit.read(line) for line in taken or []]


def give_back(client: redis.Redis, credits: Sequence[Credit]) -> None:
    """Put credits that could not be booked back on the list."""
    client.rpush(_CREDITS, *(credit.write() for credit in credits))


def _write(name: RolloutName) -> str:
    return f"{name.node}/{name.id}"
