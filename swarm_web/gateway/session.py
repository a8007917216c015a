"""What the gateway remembers: of one connection, and for all connections of a process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from weakref import WeakKeyDictionary

from django.utils import timezone

from judge.models import Season
from judge.selectors import running_season
from judge.services.answers import store_submissions
from judge.services.receipts import Signer
from judge.services.record import read_chain_head
from judge.tasks import grade_answers
from swarm_protocol.messages import Arm, ChainHead
from swarm_web.gateway.cached import Cached
from swarm_web.gateway.desk import AnswerDesk
from swarm_web.gateway.grading_bell import GradingBell
from swarm_web.nodes.models import Node

# How long rules may be old; a season's doorbell ends it early.
_MAX_AGE_S = 2.0


@dataclass(frozen=True)
class Shared:
    """What the connections of a process share: season, head of the chain, and where answers go."""

    season: Cached[Season | None]
    chain: Cached[ChainHead]
    desk: AnswerDesk
    grading: GradingBell


@dataclass
class Session:
    """One connection, from the token to the hang-up.

    `greeted` tells whether its hello was accepted, `wish` which arm its owner wants, and `arm` the
    one that it has in the season `season_id` (`gateway.arms`). `signer` is the node with the key of
    its hello, if it came with one. Time and randomness come from here,
    so that tests of handlers decide them.
    """

    node: Node
    shared: Shared
    clock: Callable[[], datetime] = timezone.now
    random: Random = field(default_factory=Random)
    greeted: bool = False
    wish: Arm = "swarm"
    arm: Arm = "swarm"
    season_id: int | None = None
    signer: Signer | None = None


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Shared] = WeakKeyDictionary()


def shared_reads() -> Shared:
    """Return what the connections of the running event loop share."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Shared(
            season=Cached(running_season, max_age_s=_MAX_AGE_S),
            chain=Cached(lambda: read_chain_head(now=timezone.now()), max_age_s=_MAX_AGE_S),
            desk=AnswerDesk(store_submissions),
            grading=GradingBell(grade_answers.delay),
        )
    return _by_loop[loop]
