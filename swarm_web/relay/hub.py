"""The relay of one web process: the pools of its seasons, and their exchange with the stores.

Publishing, drawing and reporting change only memory. The collected changes are written in batches.
Every quarter of a second, rollouts and the lists of nodes that left go to Redis. Every few seconds,
contributions go to Postgres, and credits and counts of deliveries go to Redis. A clean stop writes
everything (`close`). A killed process loses the rollouts and counts of the last seconds.

Keys of season `s`, all in one slot of a cluster and with an expiry (`relay.replica`, `relay.pairs`
and `relay.check_queue` list further ones):
    relay:{s}:given        hash of node id to how many times its rollouts were given to others
    relay:{s}:held         how many rollouts the pool holds
    relay:{s}:list:<node>  rollouts given to a node that left (`relay.delivered`)
    relay:{s}:holders      hash of node id to its current tenure in a process (`relay.handover`)
    relay:{s}:lapsed       set of ids of the nodes whose declarations do not count
    relay:{s}:weights      hash of node id to hand-out weight, for weights other than 1
    relay:{s}:turn         exists for CHECK_EVERY_S after a process began to queue rollouts to check
Keys of the site:
    relay:credits          list of batches of credits, which a worker books (`relay.credits`)
    relay:checks           queue of rollouts for a worker to check (`relay.check_queue.Check`)
"""

import asyncio
import logging
import secrets
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from math import ceil
from random import Random

import msgspec
import redis.asyncio
import redis.exceptions
from channels.db import database_sync_to_async
from django.conf import settings

from swarm_web.core import counters
from swarm_web.core.event_loops import end_task, one_per_loop
from swarm_web.core.store import async_redis
from swarm_web.core.store_clock import store_clock
from swarm_web.core.write_behind import STORE_ERRORS, WriteBehind
from swarm_web.nodes.models import Node
from swarm_web.relay.credits import CreditOutbox
from swarm_web.relay.handover import Members
from swarm_web.relay.intake import SampleLimits, SampleQuota, offer_samples
from swarm_web.relay.keys import CHECKS, season_key
from swarm_web.relay.replica import Replica
from swarm_web.relay.season_pool import Member, SeasonPool
from swarm_web.relay.services.folding import fold_changes
from swarm_web.relay.tally import Tally
from swarm_web.relay.window import Bounds

logger = logging.getLogger(__name__)

RELAY_PAUSE_S = 0.25
FOLD_PAUSE_S = 5.0
# Interval at which the results of other processes and of the worker are read.
READ_EVERY_S = 0.5
CHECK_EVERY_S = 5.0
# A season may pause for a long time, and its counts must persist.
_DELIVERIES_EXPIRY_S = 90 * 86_400
# A bound in case no worker takes the checks.
_MAX_WAITING_CHECKS = 64
# Errors of Redis, and of decoding a value that this version of the site does not write.
_READ_ERRORS = (*STORE_ERRORS, ValueError)
_CONNECTION_ERRORS = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
_YIELD_EVERY = 256  # a few milliseconds of work: nodes are answered in between

# KEYS: hash. ARGV: seconds to keep it, then (field, amount)...
_ADD = """
for i = 2, #ARGV, 2 do
    redis.call('HINCRBY', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
"""


def read_bounds() -> Bounds:
    """Return the bounds of a pool as set by the operator."""
    return Bounds(
        size=settings.RELAY_POOL_SIZE,
        per_node=settings.RELAY_ROLLOUTS_PER_NODE,
        per_party=settings.RELAY_ROLLOUTS_PER_OWNER,
        per_task=settings.RELAY_ROLLOUTS_PER_TASK,
        body_bytes=settings.RELAY_POOL_BYTES,
        max_age_s=settings.RELAY_MAX_AGE_S,
    )


class Hub:
    """The relay of one event loop: its pools, and their exchange with Redis and Postgres.

    `clock` returns Unix seconds.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        bounds: Bounds,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._bounds = bounds
        self._sample_limits = SampleLimits(
            site=settings.RELAY_ARCHIVE_PER_MINUTE, node=settings.RELAY_ARCHIVE_PER_NODE
        )
        self._clock = clock
        self._process = secrets.token_hex(8)
        self._pools: dict[int, SeasonPool] = {}
        self._replicas: dict[int, Replica] = {}
        self._opened_at: dict[int, float] = {}
        self._tally = Tally()
        self._credits = CreditOutbox(client, source=self._process)
        self._members = Members(client, process=self._process)
        self._opening = asyncio.Lock()
        self._refreshing: asyncio.Task[None] | None = None
        self._random = Random(secrets.randbits(64))
        self._add = client.register_script(_ADD)
        self._relay = WriteBehind(self._write_relay, pause_s=RELAY_PAUSE_S, name="relay")
        self._fold = WriteBehind(self._write_fold, pause_s=FOLD_PAUSE_S, name="contributions")

    # ---- for the handlers

    async def open(self, season_id: int) -> SeasonPool:
        """Return a season's pool; a new one is filled with the rollouts of other processes.

        If Redis cannot be read, the new pool begins empty.
        """
        pool = self._pools.get(season_id)
        if pool is not None:
            # Keeps the pool for nodes that are about to join.
            self._opened_at[season_id] = self._clock()
            return pool
        async with self._opening:
            if season_id not in self._pools:
                self._replicas[season_id] = Replica(
                    self._client,
                    season_id=season_id,
                    process=self._process,
                    bounds=self._bounds,
                    ahead_s=store_clock().ahead_s,
                )
                pool = SeasonPool(
                    season_id,
                    bounds=self._bounds,
                    quota=SampleQuota(self._sample_limits),
                    tally=self._tally,
                )
                await self._members.listen()
                try:
                    await self._read_updates(pool)
                except _READ_ERRORS:
                    logger.warning("could not read Redis; the pool begins empty", exc_info=True)
                self._pools[season_id] = pool
                self._opened_at[season_id] = self._clock()
                if self._refreshing is None:
                    self._refreshing = asyncio.create_task(self._refresh_loop())
        return self._pools[season_id]

    async def join(self, pool: SeasonPool, node: Node) -> Member:
        """Return a node's membership in a pool, with the rollouts given to it in any process."""
        return await self._members.join(pool.season_id, node)

    def leave(self, pool: SeasonPool, member: Member) -> None:
        """End a membership. Does nothing if it has ended already.

        The list of the rollouts that the node was given is written to Redis soon afterwards.
        """
        if self._members.leave(pool.season_id, member):
            self._relay.wake()

    def count_refusal(self, season_id: int, node_id: int, code: str) -> None:
        """Count a refused message of a node, if its error code is evidence of the node's conduct.

        Other codes are ignored.
        """
        if self._tally.count_refusal((season_id, node_id), code):
            self._fold.wake()

    def wake(self) -> None:
        """Schedule a write of the collected changes; call this after each change of a pool."""
        self._relay.wake()
        self._fold.wake()

    async def flush(self) -> None:
        """Write all collected changes now. Raises the errors of Redis and Postgres."""
        await self._relay.flush()
        await self._fold.flush()

    async def refresh(self) -> None:
        """Bring all pools up to date with Redis, and queue rollouts for the worker's checks.

        A background task also does this every READ_EVERY_S. For each season, rollouts are queued at
        most once in CHECK_EVERY_S, by one of the processes. Raises the errors of the Redis client,
        and ValueError for a value that cannot be decoded.
        """
        for pool in tuple(self._pools.values()):
            await self._refresh(pool)

    async def close(self) -> None:
        """Stop the background work and write all collected changes; drop what cannot be written."""
        if self._refreshing is not None:
            await end_task(self._refreshing)
        self._refreshing = None
        await self._fold.close()
        await self._relay.close()
        await self._members.close()

    # ---- what is written soon: to Redis

    async def _write_relay(self) -> None:
        now = self._clock()
        # A season may be opened during the loop.
        for season_id, pool in tuple(self._pools.items()):
            # Rollouts may be lost: a batch that fails is not sent again.
            entries = pool.take_outgoing()
            try:
                if entries:
                    await self._replicas[season_id].write(entries, now=now)
            except STORE_ERRORS:
                counters.count(counters.RELAY, "not_replicated", by=len(entries))
                raise
            samples = sorted(pool.take_samples(), key=lambda sample: sample.node_id)
            for _, group in groupby(samples, key=lambda sample: sample.node_id):
                await offer_samples(self._client, list(group), limits=self._sample_limits)
        await self._members.write()

    async def _write_deliveries(self) -> None:
        deliveries = self._tally.take_deliveries()
        if not deliveries:
            return
        by_season: defaultdict[int, list[int]] = defaultdict(list)
        for (season_id, node_id), count in deliveries.items():
            by_season[season_id] += (node_id, count)
        try:
            for season_id, pairs in by_season.items():
                await self._add(
                    keys=[season_key(season_id, "given")], args=[_DELIVERIES_EXPIRY_S, *pairs]
                )
                for node_id in pairs[::2]:
                    del deliveries[season_id, node_id]
        except BaseException:
            self._tally.deliveries.update(deliveries)
            raise

    # ---- what is written later: to Postgres, and for the worker

    async def _write_fold(self) -> None:
        try:
            await self._write_changes()
        finally:
            # Stored in Redis, because Postgres may be down.
            await self._write_deliveries()
            await self._credits.send(self._tally)

    async def _write_changes(self) -> None:
        changes, points = self._tally.take_changes()
        if not changes and not points:
            return
        try:
            await database_sync_to_async(fold_changes)(changes, points)
        except BaseException:
            self._tally.put_back(changes, points)
            raise

    # ---- what is read

    async def _refresh_loop(self) -> None:
        """Read Redis for all pools every READ_EVERY_S, also after errors; drop idle pools."""
        while True:
            await asyncio.sleep(READ_EVERY_S)
            for pool in tuple(self._pools.values()):
                if self._is_idle(pool):
                    for by_season in (self._pools, self._replicas, self._opened_at):
                        del by_season[pool.season_id]
                    continue
                try:
                    await self._refresh(pool)
                except _READ_ERRORS as problem:
                    logger.warning("could not read Redis, retrying", exc_info=True)
                    if isinstance(problem, _CONNECTION_ERRORS):
                        self._replicas[pool.season_id].reset()

    def _is_idle(self, pool: SeasonPool) -> bool:
        """Return whether a pool is unused and empty, after evicting its expired entries.

        An idle pool was last opened more than `max_age_s` ago, has no members and no entries, and
        has nothing left to write.
        """
        now = self._clock()
        pool.window.expire(now=now)
        if now - self._opened_at[pool.season_id] <= self._bounds.max_age_s:
            return False
        is_waiting = pool.window or pool.outgoing or pool.samples
        return not is_waiting and not self._members.has_members(pool.season_id)

    async def _refresh(self, pool: SeasonPool) -> None:
        await self._read_updates(pool)
        await self._enqueue_checks(pool)

    async def _read_updates(self, pool: SeasonPool) -> None:
        """Add other processes' rollouts, apply the worker's results, and write the pool's size."""
        now = self._clock()
        entries = await self._replicas[pool.season_id].read(now=now)
        for number, entry in enumerate(entries, start=1):
            pool.window.add(entry, now=now)
            if not number % _YIELD_EVERY:
                await asyncio.sleep(0)
        async with self._client.pipeline(transaction=False) as pipeline:
            pipeline.smembers(season_key(pool.season_id, "lapsed"))
            pipeline.hgetall(season_key(pool.season_id, "weights"))
            pipeline.set(season_key(pool.season_id, "held"), len(pool.window), ex=60)
            lapsed, weights, _ = await pipeline.execute()
        pool.apply_results(
            doubted=frozenset(map(int, lapsed)),
            weights={int(node): float(weight) for node, weight in weights.items()},
        )

    async def _enqueue_checks(self, pool: SeasonPool) -> None:
        """Queue rollouts for the worker's checks, if no process did in the last CHECK_EVERY_S."""
        declared = ceil(settings.RELAY_DECLARED_CHECKS_PER_MINUTE * CHECK_EVERY_S / 60)
        arbitrary = ceil(settings.RELAY_SPOT_CHECKS_PER_MINUTE * CHECK_EVERY_S / 60)
        turn = season_key(pool.season_id, "turn")
        if not declared + arbitrary or not await self._client.set(
            turn, 1, nx=True, px=int(1000 * CHECK_EVERY_S)
        ):
            return
        checks = pool.choose_checks(
            declared=declared, arbitrary=arbitrary, now=self._clock(), random=self._random
        )
        if checks:
            async with self._client.pipeline(transaction=True) as pipeline:
                pipeline.rpush(CHECKS, *map(msgspec.msgpack.encode, checks))
                pipeline.ltrim(CHECKS, -_MAX_WAITING_CHECKS, -1)
                await pipeline.execute()


@one_per_loop
def hub() -> Hub:
    """Return the running event loop's hub."""
    return Hub(async_redis(), read_bounds())
