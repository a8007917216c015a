"""Swarm against isolated: claims, refusals and corrections."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, product

import numpy as np
import pytest
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from judge.comparison import Claim, Missing, Unit, compare_arms, compare_seasons

BETTER = [0.11, 0.09, 0.14, 0.08, 0.12]
WORSE = [-0.10, -0.13, -0.08, -0.11, -0.12]
MIXED = [0.03, -0.02, 0.01, -0.01, 0.00]


def make_units(arm: str, deviations: Sequence[float], *, rounds: int = 3) -> list[Unit]:
    return [
        Unit(node=f"{arm}-{i}", arm=arm, deviation=deviation, rounds=rounds)
        for i, deviation in enumerate(deviations)
    ]


def claim_about(swarm: Sequence[float], isolated: Sequence[float], *, seed: int = 1) -> Claim:
    units = make_units("swarm", swarm) + make_units("isolated", isolated)
    (claim,) = compare_arms({"tiny": units}, seed=seed)
    return claim


# ---- within a season


def test_a_clear_difference_is_claimed_for_the_better_arm() -> None:
    assert claim_about(BETTER, WORSE).verdict == "swarm_better"
    assert claim_about(WORSE, BETTER).verdict == "isolated_better"


def test_arms_that_overlap_show_nothing() -> None:
    claim = claim_about(MIXED, MIXED)
    assert claim.verdict == "not_shown"
    assert claim.p_value == 1
    assert claim.missing is None


def test_the_difference_is_swarm_minus_isolated() -> None:
    assert claim_about(BETTER, WORSE).difference == pytest.approx(0.108 + 0.108)


def test_the_interval_is_welchs() -> None:
    swarm, isolated = [*BETTER, 0.4, -0.2], WORSE
    reference = CompareMeans(DescrStatsW(swarm), DescrStatsW(isolated))
    expected = reference.tconfint_diff(alpha=0.05, usevar="unequal")
    assert claim_about(swarm, isolated).interval == pytest.approx(expected)


def test_the_p_value_of_few_nodes_counts_all_shuffles() -> None:
    swarm, isolated = [0.03, 0.01, 0.05, -0.02, 0.04], [0.00, -0.01, 0.02, -0.03, -0.04]
    pooled = np.array(swarm + isolated)
    sums = np.array([pooled[list(chosen)].sum() for chosen in combinations(range(10), 5)])
    upper = float((sums >= sum(swarm) - 1e-12).mean())
    lower = float((sums <= sum(swarm) + 1e-12).mean())
    assert claim_about(swarm, isolated).p_value == pytest.approx(2 * min(upper, lower))


@pytest.mark.slow
def test_many_nodes_are_shuffled_by_the_seed_alone() -> None:
    rng = np.random.default_rng(0)
    swarm, isolated = rng.normal(0.02, 0.1, 20).tolist(), rng.normal(0, 0.1, 20).tolist()
    assert claim_about(swarm, isolated, seed=1) == claim_about(swarm, isolated, seed=1)
    drawn = {claim_about(swarm, isolated, seed=seed).p_value for seed in range(4)}
    assert len(drawn) > 1


def test_p_values_are_corrected_over_the_models_that_can_be_tested() -> None:
    enough = make_units("swarm", BETTER) + make_units("isolated", WORSE)
    even = make_units("swarm", MIXED) + make_units("isolated", MIXED)
    few = make_units("swarm", BETTER)
    first, second, third = compare_arms({"a": enough, "b": few, "c": even}, seed=1)
    assert first.family == second.family == third.family == ("a", "c")
    assert first.p_value == pytest.approx(2 / 252)
    assert first.p_adjusted == pytest.approx(4 / 252)
    assert (second.p_value, second.p_adjusted) == (None, None)
    assert third.p_adjusted == 1


def test_a_claim_that_does_not_survive_the_correction_is_not_made() -> None:
    units = make_units("swarm", BETTER) + make_units("isolated", WORSE)
    claims = compare_arms({f"model-{i}": units for i in range(7)}, seed=1)
    assert {claim.verdict for claim in claims} == {"not_shown"}


def test_four_nodes_in_an_arm_are_too_few() -> None:
    claim = claim_about(BETTER, WORSE[:4])
    assert claim.verdict == "too_few"
    assert claim.p_value is None
    assert claim.difference is not None
    assert claim.missing == Missing(swarm_nodes=0, isolated_nodes=1, rounds=3)


def test_nodes_with_two_rounds_do_not_count_yet() -> None:
    units = make_units("swarm", BETTER, rounds=2) + make_units("isolated", WORSE)
    (claim,) = compare_arms({"tiny": units}, seed=1)
    assert (claim.verdict, claim.n_swarm, claim.n_isolated) == ("too_few", 0, 5)
    assert claim.missing == Missing(swarm_nodes=0, isolated_nodes=0, rounds=1)


def test_an_empty_arm_has_no_difference() -> None:
    claim = claim_about(BETTER, [])
    assert (claim.difference, claim.interval, claim.verdict) == (None, None, "too_few")


def test_a_model_without_any_node_lacks_everything() -> None:
    assert claim_about([], []).missing == Missing(swarm_nodes=5, isolated_nodes=5, rounds=3)


def test_base_models_belong_to_neither_arm() -> None:
    units = make_units("swarm", BETTER) + make_units("isolated", WORSE)
    with_base = units + make_units("base", [0.9] * 6)
    assert compare_arms({"tiny": with_base}, seed=1) == compare_arms({"tiny": units}, seed=1)


@pytest.mark.parametrize("other", [0.1, -0.1, 0.1 + 1e-17])
def test_arms_without_any_spread_have_no_interval(other: float) -> None:
    claim = claim_about([0.1] * 6, [other] * 5)
    assert claim.interval is None
    assert claim.verdict == ("swarm_better" if other < 0 else "not_shown")


def test_a_season_without_models_claims_nothing() -> None:
    assert compare_arms({}, seed=1) == []


def test_claims_can_be_written_as_json() -> None:
    rng = np.random.default_rng(0)
    for claim in (claim_about(rng.normal(size=9).tolist(), WORSE), claim_about([], WORSE)):
        assert json.loads(json.dumps(asdict(claim)))["model"] == "tiny"
    json.dumps(asdict(compare_seasons({"a": 0.1, "b": 0.2})))


# ---- over seasons


def name_seasons(differences: Sequence[float]) -> dict[str, float]:
    return {f"season-{i}": difference for i, difference in enumerate(differences)}


def test_five_seasons_are_too_few_however_clear() -> None:
    claim = compare_seasons(name_seasons([0.1] * 5))
    assert (claim.verdict, claim.p_value, claim.missing_seasons) == ("too_few", None, 1)
    assert claim.difference == pytest.approx(0.1)


def test_six_seasons_of_one_sign_make_a_claim() -> None:
    up, down = [0.1, 0.2, 0.05, 0.1, 0.3, 0.1], [-0.1, -0.2, -0.05, -0.1, -0.3, -0.1]
    assert compare_seasons(name_seasons(up)).verdict == "swarm_better"
    assert compare_seasons(name_seasons(down)).verdict == "isolated_better"
    assert compare_seasons(name_seasons(up)).p_value == pytest.approx(2 / 64)


def test_the_p_value_of_seasons_counts_all_signs() -> None:
    values = np.array([0.1, -0.02, 0.07, 0.05, -0.04, 0.03, 0.01])
    means = np.array([(values * signs).mean() for signs in product((1, -1), repeat=7)])
    expected = 2 * float((means >= values.mean() - 1e-12).mean())
    claim = compare_seasons(name_seasons(values.tolist()))
    assert claim.p_value == pytest.approx(expected)
    assert claim.verdict == "not_shown"


def test_the_interval_over_seasons_is_students() -> None:
    values = [0.1, -0.02, 0.07, 0.05, -0.04, 0.03]
    expected = DescrStatsW(values).tconfint_mean(alpha=0.05)
    assert compare_seasons(name_seasons(values)).interval == pytest.approx(expected)


def test_more_seasons_than_can_be_enumerated_give_the_same_claim_every_time() -> None:
    values = name_seasons(np.random.default_rng(0).normal(0.05, 0.1, 24).tolist())
    claim = compare_seasons(values)
    assert claim == compare_seasons(values)
    assert claim.p_value is not None


@pytest.mark.parametrize("differences", [[], [0.1], [0.0] * 6, [0.1] * 8])
def test_seasons_without_any_spread_have_no_interval(differences: list[float]) -> None:
    assert compare_seasons(name_seasons(differences)).interval is None
