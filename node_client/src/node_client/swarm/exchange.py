"""The training thread's way to the swarm: hands out rollouts, fetches those of others.

The trainer calls from its own thread and is never kept waiting for long: publishing only queues,
and what was asked for before the step is usually there when it is needed.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import PASSING, PAUSE_S, Outbox
from node_client.swarm.preferring import allowed_preference
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    Arm,
    ExternalRollout,
    Preference,
    Rollout,
    SeasonInfo,
)
from swarm_tasks.allowlist import is_training_spec

MAX_OWED_ROLLOUTS = 128
SAMPLE_WAIT_S = 2.0

# Pacing for tiny models, which make dozens of steps a second: a coordinator takes some 20 messages
# a second from a node, and the judge's must always be among them.
PUBLISH_REST_S = 1.0
SAMPLE_EVERY_S = 0.1
# How long a node that took itself for a swarm one, and is told otherwise, asks for nothing.
ISOLATED_REST_S = 60.0


class SwarmExchange:
    """The way to a coordinator. `published` counts what the pool took.

    Nothing goes either way without a season: practice is nobody else's business. `prefer` says
    how rollouts of others are drawn, if the season allows it; `with_logprobs` asks for those of the
    senders too.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        loop: asyncio.AbstractEventLoop,
        refused: Callable[[RefusedError], None],
        sample_wait_s: float = SAMPLE_WAIT_S,
        prefer: Preference = "any",
        with_logprobs: bool = False,
    ) -> None:
        self._client = client
        self._loop = loop
        self._sample_wait_s = sample_wait_s
        self._prefer: Preference = prefer
        self._with_logprobs = with_logprobs
        self._may_ask_at = 0.0
        self._isolated_until = 0.0
        self._fetching: Future[list[ExternalRollout]] | None = None
        self._season: SeasonInfo | None = None
        self._gives = False
        self._informative: set[str] = set()
        self.published = 0
        self.outbox: Outbox[Rollout] = Outbox(
            client=client,
            send=self._send,
            refused=refused,
            most=MAX_OWED_ROLLOUTS,
            batch=MAX_OWED_ROLLOUTS,
            rest_s=PUBLISH_REST_S,
            left=self._forget,
        )

    def follow(self, season: SeasonInfo | None, *, arm: Arm) -> None:
        """Share in this season, as far as it lets nodes of this arm. Must be called on the loop.

        What is still to be shared of another season is given up: nobody would take it.
        """
        gives = season is not None and may_publish(arm, season)
        if (season, gives) != (self._season, self._gives):
            self._season, self._gives = season, gives
            self.outbox.clear()

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Queue rollouts for sharing; the oldest give way when the coordinator is gone."""
        self._loop.call_soon_threadsafe(self._owe, rollouts, informative)

    def prefetch(self, count: int) -> None:
        """Ask already for what the coming step will sample; none calls off what was asked for."""
        if count == 0 or self._season is None:
            self._call_off()
        elif self._fetching is None and self._client.connected and not self._is_isolated():
            self._fetching = self._fetch(count)

    def sample(self, count: int) -> list[ExternalRollout]:
        """Return up to `count` rollouts of others, or none when they cannot be had quickly."""
        if self._season is None:
            self._call_off()
            return []
        fetching, self._fetching = self._fetching, None
        if fetching is None and self._is_isolated():
            return []
        fetching = fetching or self._fetch(count)
        try:
            return fetching.result(timeout=self._sample_wait_s)[:count]
        except FutureTimeoutError:
            fetching.cancel()
            return []
        except (UnansweredError, RefusedError):
            return []

    def _owe(self, rollouts: Sequence[Rollout], informative: Collection[str]) -> None:
        """Owe those of the season: a step may have begun in another one, or in practice."""
        season = self._season
        if season is None or not self._gives:
            return
        owed = [
            rollout
            for rollout in rollouts
            if is_training_spec(rollout.task, seed=season.seed, tasks=season.tasks)
        ]
        self._informative.update(rollout.id for rollout in owed if rollout.id in informative)
        # Here and in the pool the oldest give way first: let these be what teaches nobody.
        self.outbox.put(sorted(owed, key=lambda rollout: rollout.id in informative))

    def _forget(self, rollouts: Sequence[Rollout]) -> None:
        self._informative.difference_update(rollout.id for rollout in rollouts)

    def _call_off(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.cancel()

    def _is_isolated(self) -> bool:
        return self._loop.time() < self._isolated_until

    def _fetch(self, count: int) -> Future[list[ExternalRollout]]:
        return asyncio.run_coroutine_threadsafe(self._ask(count), self._loop)

    async def _ask(self, count: int) -> list[ExternalRollout]:
        """Ask the pool, at the agreed pace and again when the coordinator is busy."""
        while True:
            now = self._loop.time()
            turn = max(now, self._may_ask_at)
            self._may_ask_at = turn + SAMPLE_EVERY_S
            if turn > now:
                await asyncio.sleep(turn - now)
            try:
                return await self._client.sample(
                    count,
                    prefer=allowed_preference(self._prefer, self._season),
                    with_logprobs=self._with_logprobs,
                )
            except RefusedError as refusal:
                if refusal.code == ErrorCode.RELAY_ISOLATED:
                    self._isolated_until = self._loop.time() + ISOLATED_REST_S
                if refusal.code not in PASSING:
                    raise
                self._may_ask_at = self._loop.time() + (refusal.retry_after or PAUSE_S)

    async def _send(self, rollouts: Sequence[Rollout]) -> None:
        self.published += await self._client.publish(rollouts, informative=self._informative)


def may_publish(arm: Arm, season: SeasonInfo) -> bool:
    """Whether a node of this arm shares its rollouts in this season."""
    return arm != "isolated" or season.isolated_publish
