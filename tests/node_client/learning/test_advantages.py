"""Advantages against numbers worked out by hand; test_losses_trl.py compares them with trl's."""

import pytest

from node_client.learning.advantages import group_advantages


def test_advantages_are_differences_from_the_group_mean_in_standard_deviations() -> None:
    (advantages,) = group_advantages([[1.0, 0.0, 0.0, 0.0]], scale_rewards="group")
    # mean 1/4, Bessel-corrected standard deviation 1/2
    assert advantages == pytest.approx([1.5, -0.5, -0.5, -0.5], rel=1e-3)


def test_advantages_can_be_left_unscaled() -> None:
    (advantages,) = group_advantages([[1.0, 0.0, 0.0, 0.0]], scale_rewards="none")
    assert advantages == [0.75, -0.25, -0.25, -0.25]


def test_batch_divides_all_by_the_same_deviation() -> None:
    both = group_advantages([[1.0, 0.0], [0.0, 0.0]], scale_rewards="batch")
    assert both == [pytest.approx([1, -1], rel=1e-3), [0, 0]]


@pytest.mark.parametrize("reward", [0.0, 0.1, 1.0])
def test_equal_rewards_give_exactly_no_advantage(reward: float) -> None:
    assert group_advantages([[reward] * 7], scale_rewards="group") == [[0.0] * 7]


def test_each_group_is_compared_with_itself() -> None:
    one, other = group_advantages([[1.0, 0.0], [5.0, 3.0]], scale_rewards="group")
    assert one == pytest.approx(other, rel=1e-3)


def test_groups_may_differ_in_size() -> None:
    pair, triple = group_advantages([[1.0, 0.0], [1.0, 0.0, 0.0]], scale_rewards="none")
    assert (len(pair), len(triple)) == (2, 3)
