"""What the gateway remembers: of one connection, and for all connections of a process."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from random import Random
from weakref import WeakKeyDictionary

from django.utils import timezone

from judge.models import Season
from judge.selectors import running_season
from swarm_web.gateway.cached import Cached
from swarm_web.leaderboard import LeaderboardRow, read_leaderboard
from swarm_web.nodes.models import Node

# How long rules and standings may be old; a season's doorbell ends it early for the rules.
_MAX_AGE_S = 2.0


@dataclass(frozen=True)
class Shared:
    """What every connection of a process reads: the running season, and its rows by node name."""

    season: Cached[Season | None]
    standings: Cached[dict[str, LeaderboardRow]]


@dataclass
class Session:
    """One connection, from the token to the hang-up.

    `greeted` tells whether its hello was accepted. Time and randomness come from here, so that
    tests of handlers decide them.
    """

    node: Node
    shared: Shared
    clock: Callable[[], datetime] = timezone.now
    random: Random = field(default_factory=Random)
    greeted: bool = False


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Shared] = WeakKeyDictionary()


def shared_reads() -> Shared:
    """Return what the connections of the running event loop share."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Shared(
            season=Cached(running_season, max_age_s=_MAX_AGE_S),
            standings=Cached(partial(_read_standings, timezone.now), max_age_s=_MAX_AGE_S),
        )
    return _by_loop[loop]


def _read_standings(clock: Callable[[], datetime]) -> dict[str, LeaderboardRow]:
    """Return the running season's leaderboard by node name; empty while none runs."""
    season = running_season()
    if season is None:
        return {}
    board = read_leaderboard(season, window="season", now=clock())
    return {row.node: row for row in board.rows}
