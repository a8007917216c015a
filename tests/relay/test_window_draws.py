"""Distribution of each sampling strategy: chi-square tests with fixed seeds."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from scipy.stats import chisquare

from swarm_web.relay.window import Entry, PoolWindow, Strategy
from tests.relay.windows import draw, fill, key, make_window

DRAWS = 20_000


def check_distribution(counts: Counter[Any], chances: Mapping[Any, float]) -> None:
    """Check counts against chances, which need not sum to 1."""
    assert set(counts) <= {name for name, chance in chances.items() if chance > 0}
    total, total_chance = counts.total(), sum(chances.values())
    names = [name for name, chance in chances.items() if chance > 0]
    expected = [chances[name] / total_chance * total for name in names]
    assert min(expected) >= 5
    assert chisquare([counts[name] for name in names], expected).pvalue > 1e-4


def draw_often(window: PoolWindow, count: int, *, seed: int, **wanted: Any) -> list[list[Entry]]:
    random = Random(seed)
    return [draw(window, count, random=random, **wanted) for _ in range(DRAWS)]


def count_entries(draws: list[list[Entry]]) -> Counter[str]:
    return Counter(entry.key for drawn in draws for entry in drawn)


def make_uneven() -> PoolWindow:
    """Return a window in which one party holds 94 of 100 entries, and three others 2 each."""
    window = make_window()
    fill(window, 1, range(94), dataset="gcd")
    for node in (2, 3, 4):
        fill(window, node, range(2), dataset="chess")
    return window


def test_any_is_uniform_over_rollouts() -> None:
    counts = count_entries(draw_often(make_uneven(), 5, seed=1))
    check_distribution(counts, {**{key(1, i): 1 for i in range(94)}, **_two_of_each(2, 3, 4)})


def test_any_is_uniform_when_few_entries_remain() -> None:
    given = {key(1, number) for number in range(90)}
    draws = draw_often(make_uneven(), 5, seed=2, given=given, excluding="node 2")
    counts = count_entries(draws)
    check_distribution(counts, {**{key(1, i): 1 for i in range(90, 94)}, **_two_of_each(3, 4)})


def test_by_node_is_uniform_over_parties_of_different_size() -> None:
    draws = draw_often(make_uneven(), 1, seed=3, strategy=Strategy.BY_NODE)
    draws += draw_often(make_uneven(), 4, seed=4, strategy=Strategy.BY_NODE)
    firsts = [drawn[0] for drawn in draws]
    check_distribution(
        Counter(entry.party for entry in firsts), {f"node {i}": 1 for i in range(1, 5)}
    )
    of_first = Counter(entry.key for entry in firsts if entry.node_id == 1)
    check_distribution(of_first, {key(1, i): 1 for i in range(94)})


def test_by_node_skips_parties_without_remaining_entries() -> None:
    given = {key(1, number) for number in range(94)} | {key(2, 0)}
    draws = draw_often(
        make_uneven(), 3, seed=5, strategy=Strategy.BY_NODE, given=given, excluding="node 4"
    )
    assert {len(drawn) for drawn in draws} == {3}
    check_distribution(Counter(drawn[0].key for drawn in draws), {key(2, 1): 2, **_two_of_each(3)})


def test_by_task_is_uniform_over_datasets_first() -> None:
    draws = draw_often(make_uneven(), 2, seed=6, strategy=Strategy.BY_TASK)
    gcd = {key(1, i): 1 / 94 for i in range(94)}
    chess = dict.fromkeys(_two_of_each(2, 3, 4), 1 / 6)
    check_distribution(count_entries(draws), {**gcd, **chess})


def test_informative_draws_declared_entries_first_and_uniformly() -> None:
    window = make_window()
    fill(window, 1, range(4), informative=True)
    fill(window, 2, range(8))
    fill(window, 3, range(3), informative=True)
    draws = draw_often(window, 6, seed=7, strategy=Strategy.INFORMATIVE, doubted={3})
    firsts, others = [drawn[:4] for drawn in draws], [drawn[4:] for drawn in draws]
    check_distribution(count_entries(firsts), {key(1, i): 1 for i in range(4)})
    rest = {**{key(2, i): 1 for i in range(8)}, **{key(3, i): 1 for i in range(3)}}
    check_distribution(count_entries(others), rest)
    some = draw_often(window, 2, seed=8, strategy=Strategy.INFORMATIVE, doubted={3})
    check_distribution(count_entries(some), {key(1, i): 1 for i in range(4)})


def test_fresh_draws_the_youngest_of_four() -> None:
    window = make_window()
    for number in range(8):
        fill(window, number % 3, range(number, number + 1), now=number)
    draws = draw_often(window, 1, seed=9, strategy=Strategy.FRESH, now=8)
    draws += draw_often(window, 4, seed=10, strategy=Strategy.FRESH, now=8)
    distribution = {7 - i: (8 - i) ** 4 - (7 - i) ** 4 for i in range(8)}
    check_distribution(Counter(drawn[0].at for drawn in draws), distribution)


@pytest.mark.parametrize("strategy", [Strategy.ANY, Strategy.INFORMATIVE, Strategy.BY_NODE])
def test_node_is_drawn_in_proportion_to_its_weight(strategy: Strategy) -> None:
    window = make_window()
    for node in range(4):
        fill(window, node, range(6), informative=True)
    weights = {0: 0.0, 1: 0.25, 2: 0.5}
    draws = draw_often(window, 1, seed=11, strategy=strategy, weights=weights)
    chances = {(1, 0.25), (2, 0.5), (3, 1.0)}
    distribution = {key(node, i): chance for node, chance in chances for i in range(6)}
    check_distribution(count_entries(draws), distribution)


def test_weights_apply_to_entries_after_the_first() -> None:
    window = make_window()
    for node in range(3):
        fill(window, node, range(1))
    draws = draw_often(window, 2, seed=12, weights={0: 0.5})
    # Successive draws without replacement with weights 1/2, 1, 1.
    pairs = {
        (0, 1): 0.1,
        (0, 2): 0.1,
        (1, 0): 2 / 15,
        (2, 0): 2 / 15,
        (1, 2): 4 / 15,
        (2, 1): 4 / 15,
    }
    check_distribution(Counter(tuple(entry.node_id for entry in drawn) for drawn in draws), pairs)


def _two_of_each(*nodes: int) -> dict[str, float]:
    return {key(node, number): 1 for node in nodes for number in range(2)}
