"""Whether sharing helps swarms: several seasons together, one look after each."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from statsmodels.stats.weightstats import DescrStatsW

from judge.statistics.over_seasons import SeasonsClaim, compare_seasons


def name_seasons(differences: Sequence[float]) -> dict[str, float]:
    return {f"season-{i}": difference for i, difference in enumerate(differences)}


def claim_of(*differences: float) -> SeasonsClaim:
    return compare_seasons(name_seasons(differences))


def test_five_seasons_are_too_few_even_if_clear() -> None:
    claim = claim_of(*[0.1] * 5)
    assert (claim.verdict, claim.p_value, claim.missing_seasons) == ("too_few", None, 1)
    assert claim.difference == pytest.approx(0.1)


def test_six_seasons_of_one_sign_make_a_claim() -> None:
    assert claim_of(0.1, 0.2, 0.05, 0.1, 0.3, 0.1).verdict == "swarm_better"
    assert claim_of(-0.1, -0.2, -0.05, -0.1, -0.3, -0.1).verdict == "isolated_better"


def test_the_first_look_leaves_budget_for_later_ones() -> None:
    """Two of 64 sign vectors reach as far, and .7 of the budget is spent at the first look."""
    p = claim_of(0.1, 0.2, 0.05, 0.1, 0.3, 0.1).p_value
    assert p is not None
    assert 2 / 64 / 0.7 <= p <= 2 / 64 / 0.7 * 1.03


def test_a_claim_is_withdrawn_once_the_other_arm_is_ahead() -> None:
    claim = claim_of(0.1, 0.2, 0.05, 0.1, 0.3, 0.1, -2)
    assert claim.p_value is not None
    assert claim.p_value <= 0.05
    assert claim.verdict == "not_shown"


def test_repeated_looks_keep_the_error_rate_of_one_look() -> None:
    """With fixed sizes and all signs, at most 5 % of the sign vectors ever lead to a claim."""
    sizes = np.array([0.1, 0.02, 0.07, 0.05, 0.04, 0.03, 0.01, 0.06, 0.08])
    ways = [claim_of(*(sizes * signs)) for signs in product((1, -1), repeat=9)]
    claimed = sum(claim.p_value is not None and claim.p_value <= 0.05 for claim in ways)
    assert 0 < claimed <= 0.05 * 512


def test_the_interval_over_seasons_is_students() -> None:
    values = [0.1, -0.02, 0.07, 0.05, -0.04, 0.03]
    expected = DescrStatsW(values).tconfint_mean(alpha=0.05)
    assert claim_of(*values).interval == pytest.approx(expected)


def test_more_seasons_than_can_be_enumerated_give_the_same_claim_every_time() -> None:
    values = np.random.default_rng(0).normal(0.05, 0.1, 24).tolist()
    assert claim_of(*values) == claim_of(*values)
    assert claim_of(*values).p_value is not None


@pytest.mark.parametrize("differences", [[], [0.1], [0.0] * 6, [0.1] * 8])
def test_seasons_with_equal_differences_have_no_interval(differences: list[float]) -> None:
    assert claim_of(*differences).interval is None
