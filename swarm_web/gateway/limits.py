"""How many messages a connection may send: a token bucket; pure."""


class TokenBucket:
    """Allow `rate` messages a second on average, and `burst` at once. Times are in seconds."""

    def __init__(self, *, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = now

    def take(self, *, now: float) -> float:
        """Take a token and return 0, or take none and return the seconds until there is one."""
        elapsed = max(0.0, now - self._filled_at)
        self._tokens = min(self._burst, self._tokens + elapsed * self._rate)
        self._filled_at = now
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0
