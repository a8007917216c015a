"""Rate limits of connections, per node and per account; reconnecting does not reset them."""

from functools import partial
from time import monotonic
from typing import NamedTuple

from django.conf import settings

from swarm_web.core.event_loops import one_per_loop
from swarm_web.gateway.limits import Allowance, KeyedBuckets, TokenBucket
from swarm_web.nodes.models import Node

# A node with this many refusals ignores `retry_after`: a node that heeds it is refused about once
# per accepted message, and each accepted message cancels _FORGIVEN refusals.
FLOOD_REFUSALS = 100
_FORGIVEN = 4


class Wait(NamedTuple):
    """How long a message must wait, in seconds; 0 if it is allowed now.

    `is_shared` is True if only the account's allowance is exhausted, not the node's own.
    """

    seconds: float
    is_shared: bool = False


class Allowances:
    """The allowances of all nodes and accounts in one event loop, by the id of node or account."""

    def __init__(self) -> None:
        self.nodes = KeyedBuckets(partial(_make_allowance, 1))
        self.owners = KeyedBuckets(partial(_make_allowance, settings.GATEWAY_OWNER_NODES))


def _make_allowance(nodes: float, now: float) -> Allowance:
    """Return a new allowance, `nodes` times as large as that of a single node."""
    return Allowance(
        messages=TokenBucket(
            rate=settings.GATEWAY_MESSAGES_PER_SECOND * nodes,
            burst=settings.GATEWAY_BURST * nodes,
            now=now,
        ),
        bytes=TokenBucket(
            rate=settings.GATEWAY_BYTES_PER_SECOND * nodes,
            burst=settings.GATEWAY_BYTES_BURST * nodes,
            now=now,
        ),
    )


class Quota:
    """The rate limit of one connection: the allowances of its node and of the node's account.

    `refused` increases by 1 for each message that exceeds the node's allowance. Each accepted
    message decreases it by _FORGIVEN, but not below 0.
    """

    __slots__ = ("_allowances", "_node", "refused")

    def __init__(self, node: Node, allowances: Allowances) -> None:
        self._node = node
        self._allowances = allowances
        self.refused = 0

    @property
    def is_flooding(self) -> bool:
        """Whether the node keeps sending although it must wait (`refused` >= FLOOD_REFUSALS)."""
        return self.refused >= FLOOD_REFUSALS

    def take(self, size: int) -> Wait:
        """Return how long a message of `size` bytes must wait, and count it if it need not wait."""
        now = monotonic()
        # Looked up each time, because full ones are removed and a node's owner may change.
        own = self._allowances.nodes.get(self._node.pk, now=now)
        wait_s = own_wait_s = own.wait(now=now)
        if self._node.owner_id is None:
            shared = None
        else:
            shared = self._allowances.owners.get(self._node.owner_id, now=now)
            wait_s = max(wait_s, shared.wait(now=now))
        if wait_s:
            # A node that waits for others of its account may heed `retry_after` and be refused
            # again.
            self.refused += own_wait_s > 0
            return Wait(wait_s, is_shared=not own_wait_s)
        if self.refused:
            self.refused = max(0, self.refused - _FORGIVEN)
        own.spend(size)
        if shared is not None:
            shared.spend(size)
        return Wait(0.0)


@one_per_loop
def allowances() -> Allowances:
    """Return the running event loop's allowances."""
    return Allowances()
