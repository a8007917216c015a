"""Queries of the relay for pages and handlers: the pool, the archive, and exchanges."""

from swarm_web.relay.selectors.archive import (
    NEWEST_FIRST,
    FoundCompletions,
    RolloutFilters,
    find_rollout,
    recent_rollouts,
    search_rollouts,
)
from swarm_web.relay.selectors.conduct import count_held, find_conduct, held_nodes
from swarm_web.relay.selectors.history import (
    Flow,
    Peer,
    exchanges_in,
    given_to,
    taken_from,
    training_points,
)
from swarm_web.relay.selectors.pooled import delivered_to_others, pool_size

__all__ = [
    "NEWEST_FIRST",
    "Flow",
    "FoundCompletions",
    "Peer",
    "RolloutFilters",
    "count_held",
    "delivered_to_others",
    "exchanges_in",
    "find_conduct",
    "find_rollout",
    "given_to",
    "held_nodes",
    "pool_size",
    "recent_rollouts",
    "search_rollouts",
    "taken_from",
    "training_points",
]
