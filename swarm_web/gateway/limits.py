"""Token buckets that limit the rate of a node, an account or an address; no I/O.

A bucket belongs to one web process. With P processes, an account whose nodes use all of them may
send up to P times its limit. Times are in seconds.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar


class TokenBucket:
    """Allows `rate` requests per second on average, `burst` at once. A rate of 0 means no limit."""

    __slots__ = ("_burst", "_filled_at", "_rate", "_tokens")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._filled_at = now

    def wait(self, *, now: float) -> float:
        """Return the seconds until a token is available; 0 if a token is available now."""
        if now > self._filled_at:
            filled = self._tokens + (now - self._filled_at) * self._rate
            self._tokens = filled if filled < self._burst else self._burst
            self._filled_at = now
        if self._tokens >= 1 or not self._rate:
            return 0.0
        return (1 - self._tokens) / self._rate

    def spend(self, tokens: float = 1) -> None:
        """Take tokens; the balance may become negative. Call `wait` first to refill the bucket."""
        self._tokens -= tokens

    def take(self, *, now: float) -> float:
        """Take a token and return 0. If none is available, return the seconds until one is."""
        wait_s = self.wait(now=now)
        if not wait_s:
            self._tokens -= 1
        return wait_s

    def block(self, seconds: float, *, now: float) -> None:
        """Allow no request for the next `seconds` seconds; no effect if the rate is 0."""
        self._tokens, self._filled_at = 1 - seconds * self._rate, now

    def is_full(self, *, now: float) -> bool:
        """Return whether the bucket is full, as a new one is."""
        self.wait(now=now)
        return self._tokens >= self._burst


@dataclass(frozen=True, slots=True)
class Allowance:
    """The messages and bytes that one node, or all nodes of an account, may send.

    A message may exceed the available bytes; the balance then becomes negative, and the next
    message has to wait. So a message is never refused only for its size.
    """

    messages: TokenBucket
    bytes: TokenBucket

    def wait(self, *, now: float) -> float:
        """Return the seconds until a message is allowed; 0 if a message is allowed now."""
        return max(self.messages.wait(now=now), self.bytes.wait(now=now))

    def spend(self, size: int) -> None:
        """Count a message of `size` bytes. Call `wait` first: it refills the buckets."""
        self.messages.spend()
        self.bytes.spend(size)

    def is_full(self, *, now: float) -> bool:
        """Return whether `messages` and `bytes` are both full, as in a new allowance."""
        return self.messages.is_full(now=now) and self.bytes.is_full(now=now)


_SWEEP_AT = 1_024


Bucket = TypeVar("Bucket", bound=TokenBucket | Allowance)


class KeyedBuckets(Generic[Bucket]):
    """Buckets by key; full ones are removed each time the number of buckets has doubled.

    A new bucket is full, so removing full ones changes no limit. If more than `max_buckets` / 2
    buckets remain, all are removed: an attacker who invents keys cannot fill the memory.
    """

    def __init__(self, make: Callable[[float], Bucket], *, max_buckets: int = 100_000) -> None:
        self._make = make
        self._max_buckets = max_buckets
        self._buckets: dict[Hashable, Bucket] = {}
        self._sweep_at = _SWEEP_AT

    def __len__(self) -> int:
        return len(self._buckets)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._buckets

    def get(self, key: Hashable, *, now: float) -> Bucket:
        """Return the key's bucket; create a full one if there is none."""
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= self._sweep_at:
                self._sweep(now)
            bucket = self._buckets[key] = self._make(now)
        return bucket

    def _sweep(self, now: float) -> None:
        self._buckets = {
            key: bucket for key, bucket in self._buckets.items() if not bucket.is_full(now=now)
        }
        if len(self._buckets) > self._max_buckets // 2:
            self._buckets.clear()
        self._sweep_at = max(_SWEEP_AT, 2 * len(self._buckets))
