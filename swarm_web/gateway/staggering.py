"""When nodes come back: each gets its own delay, so that none find a crowd; pure."""

from datetime import datetime
from random import Random

from swarm_protocol.messages import RoundInfo
from swarm_protocol.returning import LONGEST_PAUSE_S, LONGEST_WAIT_S, SOON_S


def return_window(
    nodes: int, *, per_second: float, within_s: float, opens_in_s: float | None
) -> float:
    """Return in how many seconds `nodes` nodes come back at `per_second`.

    The judge counts on at most `within_s` while a round is open or opens soon; `opens_in_s` tells
    in how many seconds one opens: 0 if it is open, None if there is none.
    """
    window_s = min(nodes / per_second, LONGEST_WAIT_S)
    if opens_in_s is None:
        return window_s
    return min(window_s, max(within_s, opens_in_s - SOON_S))


def time_to_round(current: RoundInfo | None, *, now: datetime) -> float | None:
    """Return in how many seconds the current round opens, for `return_window`."""
    if current is None or current.phase == "scoring":
        return None
    return max(0.0, (datetime.fromisoformat(current.opens_at) - now).total_seconds())


def draw_delays(count: int, *, window_s: float, random: Random) -> list[float]:
    """Return a delay in seconds for each of `count` nodes, even over the window, in any order."""
    delays = [(place + random.random()) * window_s / count for place in range(count)]
    random.shuffle(delays)
    return delays


def jitter(wait_s: float, random: Random) -> float:
    """Return a wait between `wait_s` and twice that, so that those who wait come one by one."""
    return round(wait_s * (1 + random.random()), 3)


class Slots:
    """Gives those who are sent away one after another the next free time to come back.

    `per_second` of them fit in a second. Past LONGEST_PAUSE_S they get a random one.
    """

    def __init__(self, per_second: float) -> None:
        self._step_s = 1 / per_second
        self._next = 0.0

    def take(self, *, now: float, random: Random) -> float:
        """Return the seconds until the next free time, at least half a second."""
        self._next = max(self._next, now + 0.5) + self._step_s
        if self._next - now > LONGEST_PAUSE_S:
            self._next = now + LONGEST_PAUSE_S
            return LONGEST_PAUSE_S * (1 + random.random()) / 2
        return self._next - now - self._step_s * random.random()
