"""State of one connection, and state shared by all connections of a process."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from random import Random

from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.utils import timezone
from kombu.exceptions import OperationalError

from judge.engine import Phase
from judge.models import Round, Season
from judge.selectors.rounds import current_round, describe_round
from judge.selectors.seasons import running_season
from judge.services.answers import Receipt, Submission, store_submissions
from judge.services.receipts import Signer
from judge.services.record import read_chain_head
from judge.tasks import grade_answers
from swarm_protocol.messages import Arm, ChainHead, RoundInfo
from swarm_web.core.event_loops import one_per_loop
from swarm_web.core.write_behind import WriteBehind
from swarm_web.gateway.batching import Batcher
from swarm_web.gateway.cached import Cached
from swarm_web.gateway.registration import NodeHello, register_nodes
from swarm_web.nodes.models import Node
from swarm_web.nodes.presence import authenticate_all
from swarm_web.relay.hub import Hub, hub
from swarm_web.relay.season_pool import Member, SeasonPool

logger = logging.getLogger(__name__)

# The maximum age of cached values while the database is available. A doorbell drops the season and
# the round earlier.
_MAX_AGE_S = 2.0
# How long answers are collected before grading is requested: a thousand nodes may submit at once.
GRADING_PAUSE_S = 0.1


@dataclass(frozen=True)
class SharedState:
    """State that the connections of a process share: cached values, batched work and the pools.

    `season` is the running season, `round` its current round, and `next_opening` the time at which
    its next scheduled round opens. Three fields do database work for many connections at once:
    `tokens` checks the tokens of handshakes, `hellos` registers nodes, and `answers` stores
    submitted answers. `grading.wake()` requests grading of stored answers.
    """

    season: Cached[Season | None]
    round: Cached[RoundInfo | None]
    next_opening: Cached[datetime | None]
    chain: Cached[ChainHead]
    tokens: Batcher[str, Node | None]
    hellos: Batcher[NodeHello, Signer | None]
    answers: Batcher[Submission, Receipt]
    grading: WriteBehind
    hub: Hub
    random: Random


class Session:
    """The state of one connection.

    `greeted` is whether its hello was accepted. `preferred_arm` is the arm that the hello asks for;
    `node.arm` is the node's arm in the season `season_id` (`gateway.arms`). `signer` has the node's
    name and the key from its hello; it is None if the hello had no key. Handlers get time and
    randomness from `clock` and `random`, so that tests can set them.
    """

    __slots__ = (
        *("clock", "greeted", "node", "preferred_arm", "random", "season_id", "shared"),
        *("signer", "_member", "_pool"),
    )

    def __init__(
        self,
        node: Node,
        shared: SharedState,
        *,
        clock: Callable[[], datetime] = timezone.now,
        random: Random | None = None,
        greeted: bool = False,
    ) -> None:
        self.node = node
        self.shared = shared
        self.clock = clock
        self.random = random or shared.random
        self.greeted = greeted
        self.preferred_arm: Arm = "swarm"
        self.season_id: int | None = None
        self.signer: Signer | None = None
        self._pool: SeasonPool | None = None
        self._member: Member | None = None

    async def join_pool(self, season: Season) -> tuple[SeasonPool, Member]:
        """Return the season's pool and the node's membership in it; join if necessary."""
        pool, member = self._pool, self._member
        if pool is None or member is None or member.has_left or pool.season_id != season.pk:
            self.leave_pool()
            pool = await self.shared.hub.open(season.pk)
            member = await self.shared.hub.join(pool, self.node)
            self._pool, self._member = pool, member
        # A node may get an owner while it is connected.
        member.party = self.node.party
        return pool, member

    def leave_pool(self) -> None:
        """Leave the relay's pool; keep the list of delivered rollouts in case the node returns."""
        if self._pool is not None and self._member is not None:
            self.shared.hub.leave(self._pool, self._member)


def _read_round() -> RoundInfo | None:
    season = running_season()
    judge_round = current_round(season) if season else None
    return describe_round(judge_round) if judge_round else None


def _read_next_opening() -> datetime | None:
    planned = Round.objects.filter(season__state=Season.State.RUNNING, phase=Phase.SCHEDULED)
    return planned.order_by("opens_at").values_list("opens_at", flat=True).first()


async def _enqueue_grading() -> None:
    """Request grading of the stored answers. If this fails, beat requests it later."""
    try:
        await sync_to_async(grade_answers.delay, thread_sensitive=False)()
    except OperationalError:
        logger.warning("could not enqueue grading; beat will do it", exc_info=True)


@one_per_loop
def shared_state() -> SharedState:
    """Return the state that the connections of the running event loop share."""
    return SharedState(
        season=Cached(running_season, max_age_s=_MAX_AGE_S),
        round=Cached(_read_round, max_age_s=_MAX_AGE_S),
        next_opening=Cached(_read_next_opening, max_age_s=_MAX_AGE_S),
        chain=Cached(lambda: read_chain_head(now=timezone.now()), max_age_s=_MAX_AGE_S),
        tokens=Batcher(database_sync_to_async(authenticate_all)),
        hellos=Batcher(database_sync_to_async(register_nodes)),
        answers=Batcher(database_sync_to_async(store_submissions)),
        grading=WriteBehind(_enqueue_grading, pause_s=GRADING_PAUSE_S, name="grading"),
        hub=hub(),
        random=Random(),
    )
