"""The list of rollouts that a node was given; no I/O.

A node reports which rollouts it trained on. Only rollouts in the list count, each once. The list
also keeps the relay from giving the node a rollout twice, so it has every given rollout that the
pool still holds, however many the node draws.
"""

from collections.abc import Container, Iterable
from typing import NamedTuple, TypeVar

import msgspec

# This many of the last rollouts are remembered even if the pool no longer holds them: a node
# reports after each step, so its report names recently given rollouts.
REMEMBERED = 256


class Delivered(NamedTuple):
    """A rollout of node `giver_id` that was given to another node.

    `archived` is whether the rollout was offered to the archive.
    """

    giver_id: int
    archived: bool


# The waiting rollouts and the keys of the reported ones, as stored in Redis.
_Stored = tuple[list[tuple[str, int, bool]], list[str]]

Value = TypeVar("Value")


def _keep_recent_or_held(items: dict[str, Value], held: Container[str]) -> dict[str, Value]:
    first = len(items) - REMEMBERED
    return {
        key: value
        for index, (key, value) in enumerate(items.items())
        if index >= first or key in held
    }


class DeliveredList:
    """The rollouts given to a node, by key (`Entry.key`), and which ones the node has reported.

    If `forget` is called after each draw, the list holds at most twice as many rollouts as the
    pool, plus 4 * REMEMBERED.
    """

    __slots__ = ("_reported", "_sweep_at", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, Delivered] = {}
        self._reported: dict[str, None] = {}
        self._sweep_at = 4 * REMEMBERED

    def __contains__(self, key: object) -> bool:
        return key in self._waiting or key in self._reported

    def __len__(self) -> int:
        return len(self._waiting) + len(self._reported)

    def add(self, key: str, delivered: Delivered) -> None:
        """Record that the node was given a rollout."""
        self._waiting[key] = delivered

    def forget(self, held: Container[str]) -> None:
        """Forget rollouts that the pool no longer holds. `held` has the keys that the pool holds.

        The newest rollouts are always kept: REMEMBERED of those that the node has reported, and
        REMEMBERED of the others.

        A call searches the list only if it has at least 4 * REMEMBERED rollouts and at least twice
        as many as the last search left. Otherwise the call does nothing. So the amortised cost per
        added rollout is O(1).
        """
        if len(self) < self._sweep_at:
            return
        self._waiting = _keep_recent_or_held(self._waiting, held)
        self._reported = _keep_recent_or_held(self._reported, held)
        self._sweep_at = 2 * max(len(self), 2 * REMEMBERED)

    def take(self, keys: Iterable[str]) -> list[tuple[str, Delivered]]:
        """Mark rollouts as reported, and return them with their keys.

        Skips keys of rollouts that the node was not given or has reported already.
        """
        taken = []
        for key in keys:
            delivered = self._waiting.pop(key, None)
            if delivered is not None:
                taken.append((key, delivered))
                self._reported[key] = None
        return taken

    def merge(self, earlier: "DeliveredList") -> None:
        """Add the rollouts of an earlier list of this node, before the rollouts of this list.

        A rollout that is reported in one of the two lists counts as reported.
        """
        self._reported = earlier._reported | self._reported
        waiting = earlier._waiting | self._waiting
        self._waiting = {
            key: delivered for key, delivered in waiting.items() if key not in self._reported
        }

    def pack(self) -> bytes:
        """Return the list as bytes, for another connection of the node."""
        waiting = [(key, *delivered) for key, delivered in self._waiting.items()]
        return msgspec.msgpack.encode((waiting, list(self._reported)))

    @classmethod
    def unpack(cls, packed: bytes) -> "DeliveredList":
        """Return the list that `pack` packed. Raises msgspec.DecodeError if it is unreadable."""
        waiting, reported = msgspec.msgpack.decode(packed, type=_Stored)
        delivered = cls()
        delivered._waiting = {key: Delivered(giver, archived) for key, giver, archived in waiting}
        delivered._reported = dict.fromkeys(reported)
        return delivered
