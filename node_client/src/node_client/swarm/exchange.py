"""Exchanges rollouts between the training thread and the coordinator.

The trainer calls from its own thread and waits at most FETCH_TIMEOUT_S: publishing only adds to a
queue, and external rollouts are requested before the step that needs them.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError

from node_client.settings.choices import ExternalPool
from node_client.swarm.client import SwarmClient
from node_client.swarm.handshake import UnansweredError
from node_client.swarm.outbox import PAUSE_S, TEMPORARY_CODES, Outbox
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Arm, ExternalRollout, Preference, Rollout, SeasonInfo
from swarm_tasks.allowlist import is_training_spec

MAX_QUEUED_ROLLOUTS = 128
FETCH_TIMEOUT_S = 2.0

# Pauses for tiny models, which make dozens of steps a second: a coordinator accepts about 20
# messages a second from a node, and those for the judge must not be among the refused ones.
PUBLISH_INTERVAL_S = 1.0
FETCH_INTERVAL_S = 0.1
# Pause of requests after the coordinator answered that this node is isolated.
ISOLATED_PAUSE_S = 60.0
PREFERENCES: Mapping[ExternalPool, Preference] = {
    "uniform": "any",
    "informative": "informative",
    "by-node": "by_node",
    "by-task": "by_task",
    "fresh": "fresh",
}
# The preferences that older coordinators, which do not list them, allow.
_ALWAYS_ALLOWED: Sequence[str] = ("any", "informative")


class SwarmExchange:
    """Publishes own rollouts and fetches external ones through a coordinator.

    Nothing is exchanged until `set_season` sets a season; `outbox.run` must run for rollouts to be
    sent. `prefer` is the sampling strategy for external rollouts; if the season does not allow it,
    `any` is used. `with_logprobs` requests the senders' log-probs too. `on_refused` is called for
    each refusal of published rollouts. `published` counts the rollouts that the pool accepted.
    """

    def __init__(
        self,
        *,
        client: SwarmClient,
        loop: asyncio.AbstractEventLoop,
        on_refused: Callable[[RefusedError], None],
        fetch_timeout_s: float = FETCH_TIMEOUT_S,
        prefer: Preference = "any",
        with_logprobs: bool = False,
    ) -> None:
        self._client = client
        self._loop = loop
        self._fetch_timeout_s = fetch_timeout_s
        self._prefer: Preference = prefer
        self._with_logprobs = with_logprobs
        self._next_request_at = 0.0
        self._isolated_until = 0.0
        self._fetching: Future[list[ExternalRollout]] | None = None
        self._season: SeasonInfo | None = None
        self._publishes = False
        self._informative: set[str] = set()
        self.published = 0
        self.outbox: Outbox[Rollout] = Outbox(
            client=client,
            send=self._send,
            on_refused=on_refused,
            capacity=MAX_QUEUED_ROLLOUTS,
            batch=MAX_QUEUED_ROLLOUTS,
            min_interval_s=PUBLISH_INTERVAL_S,
            on_removed=self._forget,
        )

    def set_season(self, season: SeasonInfo | None, *, arm: Arm) -> None:
        """Exchange rollouts in `season` from now on; None stops the exchange.

        A node whose arm may not publish in the season only fetches. If the season or the right to
        publish changes, queued rollouts are dropped, because the pool would refuse them. Must be
        called on the event loop.
        """
        publishes = season is not None and may_publish(arm, season)
        if (season, publishes) != (self._season, self._publishes):
            self._season, self._publishes = season, publishes
            self.outbox.clear()

    def publish(self, rollouts: Sequence[Rollout], *, informative: Sequence[str]) -> None:
        """Queue rollouts to be published, and return at once. May be called from any thread.

        `informative` has the ids of rollouts to declare as informative. Rollouts for tasks that are
        not in the current season are discarded. If there is no season, or the node may not publish
        in it, all rollouts are discarded. If more than MAX_QUEUED_ROLLOUTS are queued, the oldest
        are dropped.
        """
        self._loop.call_soon_threadsafe(self._queue, rollouts, informative)

    def prefetch(self, count: int) -> None:
        """Start to request `count` external rollouts for the next `fetch`.

        If `count` is 0 or there is no season, nothing is requested, and a request that was started
        earlier is cancelled.

        Does nothing if the result of an earlier request has not been fetched yet, or if there is no
        connection. The same holds for a minute after the relay has refused a request because this
        node is isolated.
        """
        if count == 0 or self._season is None:
            self._cancel_fetch()
        elif self._fetching is None and self._client.connected and not self._is_isolated():
            self._fetching = self._start_fetch(count)

    def fetch(self, count: int) -> list[ExternalRollout]:
        """Return up to `count` external rollouts: prefetched if possible, otherwise requested now.

        Blocks for at most `fetch_timeout_s` seconds. Returns an empty list if no rollouts arrive in
        that time, if the request fails, or if there is no season. For a minute after the relay has
        refused a request because this node is isolated, nothing is requested: if nothing was
        prefetched, the result is an empty list.
        """
        if self._season is None:
            self._cancel_fetch()
            return []
        fetching, self._fetching = self._fetching, None
        if fetching is None and self._is_isolated():
            return []
        fetching = fetching or self._start_fetch(count)
        try:
            return fetching.result(timeout=self._fetch_timeout_s)[:count]
        except FutureTimeoutError:
            fetching.cancel()
            return []
        except (UnansweredError, RefusedError):
            return []

    def _queue(self, rollouts: Sequence[Rollout], informative: Collection[str]) -> None:
        """Queue the rollouts for tasks of the current season, and discard the others.

        A rollout may have been generated before the current season began.
        """
        season = self._season
        if season is None or not self._publishes:
            return
        fitting = [
            rollout
            for rollout in rollouts
            if is_training_spec(rollout.task, seed=season.seed, tasks=season.tasks)
        ]
        self._informative.update(rollout.id for rollout in fitting if rollout.id in informative)
        # Here and in the pool the oldest are dropped first: put uninformative ones first.
        self.outbox.put(sorted(fitting, key=lambda rollout: rollout.id in informative))

    def _forget(self, rollouts: Sequence[Rollout]) -> None:
        self._informative.difference_update(rollout.id for rollout in rollouts)

    def _cancel_fetch(self) -> None:
        fetching, self._fetching = self._fetching, None
        if fetching is not None:
            fetching.cancel()

    def _is_isolated(self) -> bool:
        return self._loop.time() < self._isolated_until

    def _start_fetch(self, count: int) -> Future[list[ExternalRollout]]:
        return asyncio.run_coroutine_threadsafe(self._request(count), self._loop)

    async def _request(self, count: int) -> list[ExternalRollout]:
        """Request rollouts, at most one request every FETCH_INTERVAL_S.

        After a temporary refusal, waits and requests again. Raises RefusedError for any other
        refusal, and UnansweredError without a reply.
        """
        while True:
            now = self._loop.time()
            start = max(now, self._next_request_at)
            self._next_request_at = start + FETCH_INTERVAL_S
            if start > now:
                await asyncio.sleep(start - now)
            try:
                return await self._client.request_rollouts(
                    count,
                    prefer=allowed_preference(self._prefer, self._season),
                    with_logprobs=self._with_logprobs,
                )
            except RefusedError as refusal:
                if refusal.code == ErrorCode.RELAY_ISOLATED:
                    self._isolated_until = self._loop.time() + ISOLATED_PAUSE_S
                if refusal.code not in TEMPORARY_CODES:
                    raise
                self._next_request_at = self._loop.time() + (refusal.retry_after or PAUSE_S)

    async def _send(self, rollouts: Sequence[Rollout]) -> None:
        self.published += await self._client.publish_rollouts(
            rollouts, informative=self._informative
        )


def may_publish(arm: Arm, season: SeasonInfo) -> bool:
    """Return whether a node of this arm may publish its rollouts in this season."""
    return arm != "isolated" or season.isolated_publish


def allowed_preference(preferred: Preference, season: SeasonInfo | None) -> Preference:
    """Return the sampling strategy `preferred` if the season allows it, otherwise `any`.

    Without a season, or if the season names no strategies, `any` and `informative` are allowed.
    """
    allowed = _ALWAYS_ALLOWED if season is None else season.sampling or _ALWAYS_ALLOWED
    return preferred if preferred in allowed else "any"


def explain_sampling(pool: ExternalPool, season: SeasonInfo) -> Iterator[str]:
    """Yield a warning if the season does not allow `pool`, a value of `external_pool`."""
    preferred = PREFERENCES[pool]
    if allowed_preference(preferred, season) != preferred:
        yield (
            f"Rollouts of others are drawn uniformly: the season {season.name} does not allow"
            f" external_pool = {pool}."
        )
