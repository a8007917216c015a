"""Spreads the times at which nodes reconnect; no I/O."""

from datetime import datetime
from random import Random

from swarm_protocol.returning import MAX_PAUSE_S, MAX_WAIT_S, SOON_S


def reconnect_spread(
    nodes: int, *, per_second: float, within_s: float, opens_in_s: float | None
) -> float:
    """Return the seconds over which `nodes` nodes should reconnect.

    The result is `nodes` / `per_second`, but at most MAX_WAIT_S. `opens_in_s` is the time until a
    round opens: 0 if a round is open, None if no round is planned.

    If `opens_in_s` is not None, there is a second upper limit. It is `opens_in_s` - SOON_S, so that
    all nodes are back SOON_S before the round opens. If this is less than `within_s`, a delay that
    the judge allows for, the limit is `within_s` instead.
    """
    spread_s = min(nodes / per_second, MAX_WAIT_S)
    if opens_in_s is None:
        return spread_s
    return min(spread_s, max(within_s, opens_in_s - SOON_S))


def time_to_round(opens_at: datetime | None, *, now: datetime) -> float | None:
    """Return the seconds until a round opens; 0 if `opens_at` has passed, None if it is None."""
    return None if opens_at is None else max(0.0, (opens_at - now).total_seconds())


def draw_delays(count: int, *, spread_s: float, random: Random) -> list[float]:
    """Return `count` delays in seconds, in random order.

    The time from 0 to `spread_s` is divided into `count` equal parts, and one random delay is drawn
    from each part.
    """
    delays = [(index + random.random()) * spread_s / count for index in range(count)]
    random.shuffle(delays)
    return delays


def jitter(wait_s: float, random: Random) -> float:
    """Return a random wait between `wait_s` and 2 * `wait_s`; it spreads the retries of nodes."""
    return round(wait_s * (1 + random.random()), 3)


class Slots:
    """Assigns reconnect times to refused nodes: one node to each slot of 1 / `per_second` seconds.

    If no slot is free within MAX_PAUSE_S, a node gets a random time between MAX_PAUSE_S / 2 and
    MAX_PAUSE_S.
    """

    def __init__(self, per_second: float) -> None:
        self._step_s = 1 / per_second
        self._next = 0.0

    def take(self, *, now: float, random: Random) -> float:
        """Take the next free slot; return the seconds until a random time within this slot.

        The slot begins in 0.5 seconds or later. If no slot is free within MAX_PAUSE_S, the result
        is a random time between MAX_PAUSE_S / 2 and MAX_PAUSE_S.
        """
        self._next = max(self._next, now + 0.5) + self._step_s
        if self._next - now > MAX_PAUSE_S:
            self._next = now + MAX_PAUSE_S
            return MAX_PAUSE_S * (1 + random.random()) / 2
        return self._next - now - self._step_s * random.random()
