"""What a draw costs: entries that it looks at, counted, not seconds."""

from random import Random
from statistics import fmean

import pytest

from swarm_web.relay.window import PoolWindow, Strategy
from tests.relay.windows import draw, fill, key, make_window

COUNT = 8
# Looks for each entry that is drawn: four where the youngest of four is drawn.
LOOKS = {strategy: 4 if strategy is Strategy.FRESH else 1 for strategy in Strategy}


class CountingParty(str):
    """The name of a party that counts how many entries it is compared with."""

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
    """Return how many entries a draw looks at, on average over 50 draws."""
    random, looks = Random(1), []
    for _ in range(50):
        asker = CountingParty(party)
        draw(window, COUNT, strategy=strategy, excluding=asker, delivered=delivered, random=random)
        looks.append(asker.looks)
    return fmean(looks)


def make_swarm(nodes: int, each: int = 50) -> PoolWindow:
    window = make_window(size=100_000)
    for node in range(nodes):
        fill(window, node, range(each), informative=node % 2 == 0, dataset=f"d{node % 5}")
    return window


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("nodes", [20, 80, 320])
def test_a_draw_looks_at_hardly_more_than_it_gives_however_large_the_window_is(
    strategy: Strategy, nodes: int
) -> None:
    looks = count_looks(make_swarm(nodes), strategy, party="node 1")
    assert looks <= 1.2 * COUNT * LOOKS[strategy]


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("others", [2, 20, 200])
def test_a_draw_costs_at_most_twice_what_the_asker_holds_and_was_given(
    strategy: Strategy, others: int
) -> None:
    # Its own 256, and 256 that it was given.
    window = make_swarm(others)
    fill(window, 1000, range(256), informative=True, dataset="d1")
    keys = [key(node, number) for node in range(others) for number in range(50)]
    delivered = frozenset(Random(2).sample(keys, min(256, len(keys) - COUNT)))
    looks = count_looks(window, strategy, party="node 1000", delivered=delivered)
    assert looks <= 2 * (256 + 256)


@pytest.mark.parametrize("strategy", Strategy)
def test_a_draw_looks_at_no_entry_more_than_twice_though_94_percent_are_the_askers(
    strategy: Strategy,
) -> None:
    window = make_swarm(6)
    fill(window, 1000, range(4700), informative=True, dataset="d1")
    assert count_looks(window, strategy, party="node 1000") <= 2 * len(window)
