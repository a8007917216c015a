"""How long a node may stay away: while a round is open or about to open, not for long."""

import math
from datetime import datetime

from swarm_protocol.messages import RoundState, ServerMessage, Welcome
from swarm_protocol.returning import HURRY_S, LONGEST_PAUSE_S, RETURN_WITHIN_S, SOON_S

# A coordinator that asks for no pause at all would be asked without end.
_SHORTEST_S = 1.0


class Urgency:
    """Tells how long a pause may be, from what the coordinator said last.

    It is urgent unless the coordinator said that the next round opens later than SOON_S from now:
    an open round stays open while the site is away, and a node that was told nothing may miss one.
    Times are monotonic seconds.
    """

    def __init__(self) -> None:
        self._within_s = RETURN_WITHIN_S
        self._urgent_from = -math.inf

    def note(self, message: ServerMessage, *, at: float) -> None:
        """Take note of what a message, received at `at`, says about the current round."""
        if isinstance(message, Welcome):
            self._within_s = min(max(message.return_within, _SHORTEST_S), LONGEST_PAUSE_S)
        elif not isinstance(message, RoundState):
            return
        self._urgent_from = -math.inf
        if message.round is not None and message.round.phase == "scheduled":
            opens, now = (datetime.fromisoformat(t) for t in (message.round.opens_at, message.now))
            self._urgent_from = at + (opens - now).total_seconds() - SOON_S

    def longest_pause(self, *, lost_at: float, now: float) -> float:
        """Return the most seconds to wait at `now`, after a connection that ended at `lost_at`."""
        is_urgent = now >= self._urgent_from and now - lost_at < HURRY_S
        return self._within_s if is_urgent else LONGEST_PAUSE_S
