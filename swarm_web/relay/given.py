"""The rollouts that a node was recently given; pure.

A node reports which rollouts it trained on. The report counts only for rollouts that the node was
given, each once. A node is never given the same rollout twice.
"""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

import msgspec

# A node reports after each step, so its report names recently given rollouts.
REMEMBERED = 256


class Given(NamedTuple):
    """A rollout that a node was given: its author, and whether it is in the archive."""

    giver_id: int
    archived: bool


class _Stored(msgspec.Struct, array_like=True):
    waiting: list[tuple[str, int, bool]]
    reported: list[str]


Value = TypeVar("Value")


def _keep_latest(known: dict[str, Value]) -> dict[str, Value]:
    return dict(list(known.items())[-REMEMBERED:])


class GivenList:
    """The last REMEMBERED rollouts that a node was given, by key (`relay.window.Entry.key`).

    The last REMEMBERED rollouts that it reported as used are also kept.
    """

    __slots__ = ("_reported", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[str, Given] = {}
        self._reported: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._waiting or key in self._reported

    def __bool__(self) -> bool:
        return bool(self._waiting or self._reported)

    def add(self, key: str, given: Given) -> None:
        """Record a given rollout; the oldest are dropped."""
        self._waiting[key] = given
        if len(self._waiting) > REMEMBERED:
            del self._waiting[next(iter(self._waiting))]

    def take(self, keys: Iterable[str]) -> list[tuple[str, Given]]:
        """Return the keys that the node was given and has not reported; mark them as reported."""
        taken = []
        for key in keys:
            given = self._waiting.pop(key, None)
            if given is not None:
                taken.append((key, given))
                self._reported[key] = None
        while len(self._reported) > REMEMBERED:
            del self._reported[next(iter(self._reported))]
        return taken

    def merge(self, earlier: "GivenList") -> None:
        """Merge another list of the node as the older one."""
        self._reported = _keep_latest(earlier._reported | self._reported)
        waiting = earlier._waiting | self._waiting
        self._waiting = _keep_latest(
            {key: given for key, given in waiting.items() if key not in self._reported}
        )

    def pack(self) -> bytes:
        """Return the list as bytes, for another connection of the node."""
        waiting = [(key, *given) for key, given in self._waiting.items()]
        return msgspec.msgpack.encode(_Stored(waiting, list(self._reported)))

    @classmethod
    def unpack(cls, packed: bytes) -> "GivenList":
        """Return the list that `pack` packed. Raises msgspec.DecodeError."""
        stored = msgspec.msgpack.decode(packed, type=_Stored)
        given = cls()
        given._waiting = {key: Given(giver, archived) for key, giver, archived in stored.waiting}
        given._reported = dict.fromkeys(stored.reported)
        return given
