"""Computes how long to wait before trying again."""

import random
from collections.abc import Callable

from swarm_protocol.returning import MAX_PAUSE_S

FIRST_S = 1.0

# After a connection that lasted this long, pauses start again with the shortest one.
STABLE_S = 10.0


def doubling_backoff(attempt: int, longest_s: float = MAX_PAUSE_S) -> float:
    """Return the seconds to wait after a failure: 1, 2, 4, ..., but at most `longest_s`.

    `attempt` is the number of consecutive failures before this one.
    """
    # The capped exponent keeps the power small after any number of failures.
    return min(longest_s, FIRST_S * 2.0 ** min(attempt, 16))


def jittered_backoff(
    attempt: int,
    longest_s: float = MAX_PAUSE_S,
    *,
    uniform: Callable[[], float] = random.random,
) -> float:
    """Return a random number of seconds to wait after a failure.

    `attempt` is the number of consecutive failures before this one. Full jitter: uniform between 0
    and `doubling_backoff`, so that a thousand nodes that lost the coordinator at the same time do
    not reconnect at the same time. `uniform` draws from [0, 1).
    """
    return uniform() * doubling_backoff(attempt, longest_s)
