"""What a connection may send: its node's allowance and its account's, whatever the connection."""

from time import monotonic
from typing import NamedTuple

from django.conf import settings

from swarm_web.core.event_loops import one_per_loop
from swarm_web.gateway.limits import Allowance, Keyed, Rates
from swarm_web.nodes.models import Node

# A node that was refused so often does not heed `retry_after`: who does is refused about once for
# each message that is taken, and each of those makes up for some refusals.
FLOOD = 100
_MADE_UP = 4


class Wait(NamedTuple):
    """The seconds until a message may come, 0 if it may now.

    `is_shared` says that only others of the node's account took what it needed.
    """

    seconds: float
    is_shared: bool = False


class Allowances:
    """The allowances of all nodes and accounts in one event loop."""

    def __init__(self) -> None:
        node = Rates(
            messages=settings.GATEWAY_MESSAGES_PER_SECOND,
            messages_burst=settings.GATEWAY_BURST,
            bytes=settings.GATEWAY_BYTES_PER_SECOND,
            bytes_burst=settings.GATEWAY_BYTES_BURST,
        )
        nodes: float = settings.GATEWAY_OWNER_NODES
        owner = Rates(
            messages=node.messages * nodes,
            messages_burst=node.messages_burst * nodes,
            bytes=node.bytes * nodes,
            bytes_burst=node.bytes_burst * nodes,
        )
        self.nodes = Keyed(lambda now: Allowance(node, now=now))
        self.owners = Keyed(lambda now: Allowance(owner, now=now))


class Quota:
    """Counts the messages of one connection.

    `refused` are those that came too fast for the node's own allowance lately.
    """

    __slots__ = ("_allowances", "_node", "refused")

    def __init__(self, node: Node, allowances: Allowances) -> None:
        self._node = node
        self._allowances = allowances
        self.refused = 0

    @property
    def floods(self) -> bool:
        """Whether the node goes on and on although it was told to wait."""
        return self.refused >= FLOOD

    def take(self, size: int) -> Wait:
        """Count a message of `size` bytes, or return how long it has to wait."""
        now = monotonic()
        # Looked up each time: full ones are forgotten, and a node's owner may change.
        own = self._allowances.nodes.get(self._node.pk, now=now)
        wait_s = own_wait_s = own.wait(now=now)
        if self._node.owner_id is None:
            shared = None
        else:
            shared = self._allowances.owners.get(self._node.owner_id, now=now)
            wait_s = max(wait_s, shared.wait(now=now))
        if wait_s:
            # Who waits for others of its account may heed and be refused again.
            self.refused += own_wait_s > 0
            return Wait(wait_s, is_shared=not own_wait_s)
        if self.refused:
            self.refused = max(0, self.refused - _MADE_UP)
        own.spend(size)
        if shared is not None:
            shared.spend(size)
        return Wait(0.0)


@one_per_loop
def allowances() -> Allowances:
    """Return the running event loop's."""
    return Allowances()
