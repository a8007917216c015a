"""The cost of a draw, measured in entries that it looks at, not in seconds."""

from random import Random
from statistics import fmean

import pytest

from swarm_web.relay.window import PoolWindow, Strategy
from tests.relay.windows import draw, fill, key, make_window

COUNT = 8
# Looks per drawn entry: `fresh` draws the youngest of four.
LOOKS = {strategy: 4 if strategy is Strategy.FRESH else 1 for strategy in Strategy}


class CountingParty(str):
    """A party's name that counts the entries it is compared with."""

    looks = 0

    def __ne__(self, other: object) -> bool:
        self.looks += 1
        return str.__ne__(self, other)

    __eq__ = str.__eq__
    __hash__ = str.__hash__


def count_looks(
    window: PoolWindow,
    strategy: Strategy,
    *,
    party: str = "nobody",
    delivered: frozenset[str] = frozenset(),
) -> float:
    """Return the mean number of entries that a draw looks at, over 50 draws."""
    random, looks = Random(1), []
    for _ in range(50):
        requester = CountingParty(party)
        draw(
            window,
            COUNT,
            strategy=strategy,
            excluding=requester,
            delivered=delivered,
            random=random,
        )
        looks.append(requester.looks)
    return fmean(looks)


def make_swarm(nodes: int, each: int = 50) -> PoolWindow:
    window = make_window(size=100_000)
    for node in range(nodes):
        fill(window, node, range(each), informative=node % 2 == 0, dataset=f"d{node % 5}")
    return window


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("nodes", [20, 80, 320])
def test_cost_of_a_draw_is_independent_of_the_size_of_the_window(
    strategy: Strategy, nodes: int
) -> None:
    looks = count_looks(make_swarm(nodes), strategy, party="node 1")
    assert looks <= 1.2 * COUNT * LOOKS[strategy]


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("others", [2, 20, 200])
def test_cost_of_a_draw_is_at_most_twice_the_own_and_given_entries(
    strategy: Strategy, others: int
) -> None:
    # 256 own entries and 256 given ones.
    window = make_swarm(others)
    fill(window, 1000, range(256), informative=True, dataset="d1")
    keys = [key(node, number) for node in range(others) for number in range(50)]
    delivered = frozenset(Random(2).sample(keys, min(256, len(keys) - COUNT)))
    looks = count_looks(window, strategy, party="node 1000", delivered=delivered)
    assert looks <= 2 * (256 + 256)


@pytest.mark.parametrize("strategy", Strategy)
def test_cost_of_a_draw_is_at_most_twice_the_size_of_the_window(
    strategy: Strategy,
) -> None:
    window = make_swarm(6)
    fill(window, 1000, range(4700), informative=True, dataset="d1")
    assert count_looks(window, strategy, party="node 1000") <= 2 * len(window)
