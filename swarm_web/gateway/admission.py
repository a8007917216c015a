"""Limits on nodes' websocket handshakes, checked without the database.

All handshakes are refused during a shutdown or maintenance, and while at least GATEWAY_WAITING
handshakes and hellos of nodes wait for the database. A token that was accepted recently is *known*
to this process. For each known token, the number of handshakes is limited. If too many handshakes
of a network had a wrong token or none, its next handshakes with an unknown token or none are
refused. So wrong tokens do not block a known node in the same network.
"""

from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from time import monotonic

from django.conf import settings

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_web.core.event_loops import one_per_loop
from swarm_web.gateway.limits import KeyedBuckets, TokenBucket
from swarm_web.gateway.session import SharedState, shared_state
from swarm_web.gateway.staggering import Slots, jitter

# Handshakes with a token, per second on average and at once. A working client makes fewer.
_TOKEN_RATE, _TOKEN_BURST = 0.5, 30
# The shortest time for which a flooding node is refused; a random part is added.
FLOOD_WAIT_S = 30.0


@dataclass(frozen=True)
class Closure:
    """The reply to every handshake while all are refused: error code, message and retry time.

    A node should retry after a random time between `wait_s` / 2 and `wait_s` seconds. If `wait_s`
    is 0, `staggering.Slots` assigns each node its own retry time.
    """

    code: ErrorCode
    message: str
    wait_s: float = 0.0


class Admission:
    """The handshake limits of one event loop; all handshakes are refused while `closure` is set."""

    def __init__(self, shared: SharedState) -> None:
        self._shared = shared
        self._random: Random = shared.random
        self._slots = Slots(settings.GATEWAY_RETURN_PER_SECOND)
        self._failures = KeyedBuckets(_make_failure_bucket)
        self._tokens = KeyedBuckets(_make_token_bucket)
        self.closure: Closure | None = None

    def check(self, token: str | None, network: str) -> bool:
        """Return whether this process accepted the token recently; if so, count this handshake.

        `network` is the network of the client's address (`swarm_web.edge.addresses`). Raises
        RefusedError, with `retry_after`, in these cases:

        - All handshakes are refused now (`closure`).
        - The token was accepted recently, but there were too many handshakes with it.
        - The token was not accepted recently, and the network's limit (`count_failure`) is reached.
        - GATEWAY_WAITING handshakes and hellos of nodes are already waiting for the database.
        """
        now = monotonic()
        if self.closure is not None:
            wait_s = self._wait_during(self.closure, now)
            raise RefusedError(self.closure.code, self.closure.message, retry_after=wait_s)
        is_known = token is not None and _hash_token(token) in self._tokens
        if is_known and token is not None:
            self.count_handshake(token)
        else:
            wait_s = self._failures.get(network, now=now).wait(now=now)
            message = "too many handshakes with a wrong token from this address"
            self._refuse_if(wait_s, message)
        if len(self._shared.tokens) + len(self._shared.hellos) >= settings.GATEWAY_WAITING:
            message = "the coordinator has as many nodes to welcome as it can"
            raise RefusedError(ErrorCode.SERVER_BUSY, message, retry_after=self._next_slot(now))
        return is_known

    def count_handshake(self, token: str) -> None:
        """Count a handshake with a valid token, which makes the token known to `check`.

        Raises RefusedError if there were too many handshakes with this token.
        """
        now = monotonic()
        wait_s = self._tokens.get(_hash_token(token), now=now).take(now=now)
        self._refuse_if(wait_s, "too many connections with this token")

    def _refuse_if(self, wait_s: float, message: str) -> None:
        if wait_s > 0:
            wait_s = jitter(wait_s, self._random)
            raise RefusedError(ErrorCode.RATE_LIMITED, message, retry_after=wait_s)

    def make_busy_error(self) -> RefusedError:
        """Return the error that refuses a handshake while the database is unavailable."""
        message = "the coordinator's database does not answer"
        return RefusedError(
            ErrorCode.SERVER_BUSY, message, retry_after=self._next_slot(monotonic())
        )

    def count_failure(self, network: str) -> None:
        """Count a wrong or missing token against the limit of the client's network."""
        self._failures.get(network, now=monotonic()).spend()

    def suspend(self, token: str) -> float:
        """Refuse handshakes with this token for a while, and return for how many seconds.

        The time is random, between FLOOD_WAIT_S and 2 * FLOOD_WAIT_S.
        """
        now = monotonic()
        wait_s = jitter(FLOOD_WAIT_S, self._random)
        self._tokens.get(_hash_token(token), now=now).block(wait_s, now=now)
        return wait_s

    def _wait_during(self, closure: Closure, now: float) -> float:
        """Return after how many seconds a node should retry during the closure."""
        if closure.wait_s:
            return jitter(closure.wait_s / 2, self._random)
        return self._next_slot(now)

    def _next_slot(self, now: float) -> float:
        return round(self._slots.take(now=now, random=self._random), 3)


def _make_token_bucket(now: float) -> TokenBucket:
    return TokenBucket(rate=_TOKEN_RATE, burst=_TOKEN_BURST, now=now)


def _make_failure_bucket(now: float) -> TokenBucket:
    return TokenBucket(
        rate=settings.GATEWAY_WRONG_TOKENS_PER_MINUTE / 60,
        burst=settings.GATEWAY_WRONG_TOKENS_PER_MINUTE,
        now=now,
    )


def _hash_token(token: str) -> bytes:
    """Return a digest of a token to use as a key, so that the token itself is not kept."""
    return blake2b(token.encode(), digest_size=16).digest()


@one_per_loop
def admission() -> Admission:
    """Return the `Admission` of the running event loop."""
    return Admission(shared_state())
