"""Swarm minus isolated in each dataset, with nodes as units."""

import pytest

from judge.statistics.comparison import MIN_ROUNDS
from judge.statistics.task_gaps import CellUnit, compare_tasks


def make_unit(
    arm: str, correct: int, *, dataset: str = "gcd", rounds: int = MIN_ROUNDS
) -> CellUnit:
    return CellUnit(arm, rounds, {dataset: (correct, 10)})


def test_a_gap_is_the_difference_of_the_arms_mean_shares() -> None:
    units = [make_unit("swarm", c) for c in (6, 8)] + [make_unit("isolated", c) for c in (3, 5)]
    (gap,) = compare_tasks(units)
    assert (gap.dataset, gap.n_swarm, gap.n_isolated) == ("gcd", 2, 2)
    assert (gap.swarm, gap.isolated) == (0.7, 0.4)
    assert gap.interval is not None
    assert gap.interval[0] < gap.difference < gap.interval[1]
    assert gap.difference == pytest.approx(0.3)


def test_nodes_with_too_few_rounds_do_not_count() -> None:
    units = [make_unit("swarm", 6), make_unit("isolated", 3)]
    (gap,) = compare_tasks([*units, make_unit("swarm", 10, rounds=MIN_ROUNDS - 1)])
    assert gap.n_swarm == 1
    assert gap.interval is None


def test_a_dataset_without_answers_of_one_arm_is_left_out() -> None:
    units = [make_unit("swarm", 6), make_unit("isolated", 3, dataset="products")]
    assert compare_tasks(units) == []
