"""Sends credits from the web processes to the worker, which books each batch at most once.

Each process numbers its batches and sends them in order. If the connection breaks before Redis
replies, a batch is sent again under the same number, and the worker skips batches whose number it
has booked (`relay.services.crediting`). So a lost reply does not cause credits to be lost or
counted twice. If no worker takes the batches and they exceed MAX_WAITING_BYTES, the oldest are
dropped.
"""

import logging
from collections import defaultdict
from collections.abc import Collection, Sequence
from itertools import islice
from typing import cast

import msgspec
import redis.asyncio

from swarm_web.core import counters
from swarm_web.relay.keys import CREDITS
from swarm_web.relay.tally import Lesson, Pair, Tally

logger = logging.getLogger(__name__)

# Beyond this, the oldest batches are dropped, in case no worker takes them.
MAX_WAITING_BYTES = 1 << 26
# A larger number is sent in several batches.
PAIRS_PER_BATCH = 20_000

# KEYS: list. ARGV: its largest size in bytes, then batches. Returns how many of the oldest batches
# were dropped.
_APPEND = """
redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))
local dropped = 0
while (redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0) or 0) > tonumber(ARGV[1]) do
    redis.call('LPOP', KEYS[1])
    dropped = dropped + 1
end
return dropped
"""

# The fields of a `Pair`: building a `Pair` for each takes longer than all other work.
PairKey = tuple[int, int, int, int]
# The fields of all pairs as columns, and a column with the numbers of rollouts used.
PairColumns = tuple[list[int], list[int], list[int], list[int], list[int]]

_encoder = msgspec.msgpack.Encoder()


class Credits(msgspec.Struct, array_like=True, frozen=True):
    """A batch of credits, numbered from 1 by the process `source` that sent it.

    `pairs` has, for each `tally.Pair` (two nodes and a minute), how many of the giver's rollouts
    the taker used. It is stored as columns, which decode several times faster than rows. `lessons`
    lists the uses of rollouts that were sampled for the archive. `pairs` counts them too, unless
    the outbox dropped their pair.
    """

    source: str
    number: int
    pairs: PairColumns
    lessons: list[Lesson]

    def count_pairs(self) -> dict[PairKey, int]:
        """Return `pairs` as a dict.

        The keys are the fields of a `tally.Pair`, and the values are the numbers of used rollouts.
        """
        seasons, minutes, givers, takers, counts = self.pairs
        keys = zip(seasons, minutes, givers, takers, strict=True)
        return dict(zip(keys, counts, strict=True))


class CreditOutbox:
    """Sends the credits that one process collected. `source` is the unique name of the process."""

    def __init__(self, client: redis.asyncio.Redis, *, source: str) -> None:
        self._source = source
        self._number = 0
        self._append = client.register_script(_APPEND)
        # Batches in flight, including those whose connection broke.
        self._unsent: list[bytes] = []

    async def send(self, tally: Tally) -> None:
        """Send the batches that failed earlier, then take the credits out of a tally and send them.

        Raises the errors of the Redis client; the next call then sends the same batches again.
        """
        if self._unsent:
            tally.bound_credits()
            await self._push()
        pairs, lessons = tally.take_credits()
        columns = [*map(list, zip(*pairs, strict=True)), list(pairs.values())]
        lessons_by_batch = _split_lessons(lessons, pairs)
        for first in range(0, len(pairs), PAIRS_PER_BATCH):
            self._number += 1
            some = cast("PairColumns", [each[first : first + PAIRS_PER_BATCH] for each in columns])
            batch = Credits(
                self._source, self._number, some, lessons_by_batch[first // PAIRS_PER_BATCH]
            )
            self._unsent.append(_encoder.encode(batch))
        if self._unsent:
            await self._push()

    async def _push(self) -> None:
        args: list[int | bytes] = [MAX_WAITING_BYTES, *self._unsent]
        dropped = int(await self._append(keys=[CREDITS], args=args))
        self._unsent = []
        if dropped:
            counters.count(counters.RELAY, "credits_dropped", by=dropped)
            logger.warning("dropped %d batches of credits: no worker takes them", dropped)


def _split_lessons(
    lessons: Sequence[Lesson], pairs: Collection[Pair]
) -> defaultdict[int, list[Lesson]]:
    """Return the lessons by the position of the batch with their pair; 0 if the pair was dropped.

    The worker can subtract the uses of refuted rollouts only from pairs that it books with them.
    """
    later = enumerate(islice(pairs, PAIRS_PER_BATCH, None), start=PAIRS_PER_BATCH)
    position = {pair: index // PAIRS_PER_BATCH for index, pair in later}
    by_batch: defaultdict[int, list[Lesson]] = defaultdict(list)
    for lesson in lessons:
        by_batch[position.get(lesson.pair, 0)].append(lesson)
    return by_batch
