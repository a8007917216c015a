"""Helpers that create windows and entries for the tests of the relay's window."""

from collections.abc import Container, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from swarm_web.relay.likeness import digest
from swarm_web.relay.window import Bounds, Entry, Outcome, PoolWindow, Requester, Strategy

WIDE: dict[str, Any] = {
    "size": 10_000,
    "per_node": 10_000,
    "per_party": 10_000,
    "per_task": 10_000,
    "body_bytes": 1 << 30,
    "max_age_s": 600,
}


def make_window(**bounds: Any) -> PoolWindow:
    """Return a window without bounds, except for those that are given."""
    return PoolWindow(Bounds(**{**WIDE, **bounds}))


def entry(
    node: int, number: int, *, task: bytes | None = None, texts: Sequence[str] = (), **fields: Any
) -> Entry:
    """Return an entry `r<number>` of a node, with the completions `texts` to `task`."""
    completions = [f"{node}:{number}"] if task is None else texts
    known = {
        "key": key(node, number),
        "node_id": node,
        "party": f"node {node}",
        "dataset": "gcd",
        "informative": False,
        "archived": False,
        "at": 0.0,
        "body": msgspec.json.encode({"completions": [{"text": text} for text in completions]}),
        "digests": digest(task=task or b"%d:%d" % (node, number), completions=completions),
    }
    return Entry(**{**known, **fields})


def key(node: int, number: int) -> str:
    """Return the key of an entry `r<number>` of a node."""
    return f"n{node}/r{number}"


def fill(window: PoolWindow, node: int, numbers: range, *, now: float = 0, **fields: Any) -> None:
    """Add entries of a node, all of them new."""
    for number in numbers:
        new = entry(node, number, at=now, **fields)
        assert window.add(new, now=now) is Outcome.ADDED


def draw(
    window: PoolWindow,
    count: int,
    *,
    strategy: Strategy = Strategy.ANY,
    excluding: str = "nobody",
    delivered: Container[str] = frozenset(),
    weights: Mapping[int, float] | None = None,
    doubted: Container[int] = frozenset(),
    now: float = 0,
    random: Random | None = None,
) -> list[Entry]:
    """Draw with defaults for the arguments that a test does not need."""
    return window.draw(
        count,
        Requester(-1, excluding, delivered, weights or {}, doubted),
        strategy=strategy,
        now=now,
        random=random or Random(0),
    )


def held(window: PoolWindow, *, now: float = 0) -> set[str]:
    """Return the keys of all entries in the window."""
    return {each.key for each in draw(window, 100_000, now=now)}
