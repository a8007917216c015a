"""Swarm against isolated within a season: claims, missing data and corrections."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from statsmodels.api import OLS, add_constant
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from judge.statistics.comparison import (
    ArmsClaim,
    Missing,
    ModelTrial,
    adjust,
    compare_arms,
    plan_looks,
)

BETTER = [0.11, 0.09, 0.14, 0.08, 0.12]
WORSE = [-0.10, -0.13, -0.08, -0.11, -0.12]
MIXED = [0.03, -0.02, 0.01, -0.01, 0.00]
ROUNDS = 32


def make_trial(
    swarm: Sequence[float],
    isolated: Sequence[float],
    *,
    rounds: int = ROUNDS,
    looks: int = 1,
    covariates: Any = None,
) -> ModelTrial:
    """Return a trial of one block whose nodes have the same results at each look."""
    nodes = len(swarm) + len(isolated)
    return ModelTrial(
        places=[(0, place) for place in range(nodes)],
        blocks={0: [True] * len(swarm) + [False] * len(isolated)},
        deviations=np.tile([*swarm, *isolated], (looks, 1)),
        rounds=np.full((looks, nodes), rounds),
        covariates=np.zeros((nodes, 1)) if covariates is None else np.asarray(covariates),
        noise=np.full(nodes, 0.01),
    )


def compare(looks: Sequence[int] = (ROUNDS,), **trials: ModelTrial) -> list[ArmsClaim]:
    return compare_arms(trials, looks=looks, trial_rounds=ROUNDS, seed=1)


def claim_about(swarm: Sequence[float], isolated: Sequence[float], **fields: Any) -> ArmsClaim:
    (claim,) = compare(tiny=make_trial(swarm, isolated, **fields))
    return claim


# ---- looks


@pytest.mark.parametrize(
    ("rounds", "looks"),
    [
        (200, [7, 13, 25, 50, 75, 100, 125, 150, 175, 200]),
        (32, [4, 8, 12, 16, 20, 24, 28, 32]),
        (3, [3]),
    ],
)
def test_looks_are_planned_by_the_rounds_of_the_trial(rounds: int, looks: list[int]) -> None:
    assert plan_looks(rounds) == looks


def test_nothing_is_tested_before_the_first_look() -> None:
    (claim,) = compare(looks=[3], tiny=make_trial(BETTER, WORSE, rounds=3))
    assert (claim.verdict, claim.p_value) == ("too_few", None)
    assert claim.missing == Missing(swarm_nodes=0, isolated_nodes=0, rounds=1)
    assert claim.difference == pytest.approx(0.216)


def test_a_claim_halfway_needs_twice_the_evidence() -> None:
    (early,) = compare(looks=[16], tiny=make_trial(BETTER, WORSE))
    late = claim_about(BETTER, WORSE)
    assert early.p_value is not None
    assert late.p_value is not None
    assert early.p_value == pytest.approx(2 * late.p_value, rel=0.05)


def test_a_claim_is_withdrawn_once_the_other_arm_is_ahead() -> None:
    nodes = 10
    trial = make_trial([0.1] * nodes, [-0.1] * nodes, looks=2)
    trial.deviations[:] += np.linspace(-0.01, 0.01, 2 * nodes)
    trial.deviations[1] = np.tile([0.1, -0.1], nodes)
    trial.deviations[1, :nodes] -= 0.01
    (claim,) = compare(looks=[16, ROUNDS], tiny=trial)
    assert claim.p_adjusted is not None
    assert claim.p_adjusted <= 0.05
    assert claim.verdict == "not_shown"


# ---- claims


def test_a_clear_difference_is_claimed_for_the_better_arm() -> None:
    assert claim_about(BETTER, WORSE).verdict == "swarm_better"
    assert claim_about(WORSE, BETTER).verdict == "isolated_better"


def test_overlapping_arms_make_no_claim() -> None:
    claim = claim_about(MIXED, MIXED)
    assert claim.verdict == "not_shown"
    assert claim.p_value == 1
    assert claim.missing is None


def test_the_difference_is_swarm_minus_isolated() -> None:
    claim = claim_about(BETTER, WORSE)
    assert claim.difference == claim.unadjusted == pytest.approx(0.108 + 0.108)


def test_the_interval_is_welchs() -> None:
    swarm, isolated = [*BETTER, 0.4, -0.2], WORSE
    reference = CompareMeans(DescrStatsW(swarm), DescrStatsW(isolated))
    expected = reference.tconfint_diff(alpha=0.05, usevar="unequal")
    assert claim_about(swarm, isolated).interval == pytest.approx(expected)


def test_only_the_seed_determines_the_shuffles() -> None:
    claims = {
        seed: compare_arms(
            {"tiny": make_trial(MIXED, BETTER)}, looks=[ROUNDS], trial_rounds=ROUNDS, seed=seed
        )
        for seed in (1, 2, 3)
    }
    again = compare_arms(
        {"tiny": make_trial(MIXED, BETTER)}, looks=[ROUNDS], trial_rounds=ROUNDS, seed=1
    )
    assert claims[1] == again
    assert len({claim.p_value for (claim,) in claims.values()}) > 1


# ---- known facts


def test_the_adjusted_difference_equals_a_regression_on_arm_and_facts() -> None:
    rng = np.random.default_rng(0)
    covariates = rng.normal(size=(24, 2))
    values = covariates @ [0.1, -0.05] + rng.normal(0, 0.02, 24)
    values[:12] += 0.03
    design = add_constant(np.column_stack([np.repeat([1, 0], 12), covariates]))
    claim = claim_about(values[:12].tolist(), values[12:].tolist(), covariates=covariates)
    assert claim.difference == pytest.approx(OLS(values, design).fit().params[1])
    assert claim.unadjusted == pytest.approx(values[:12].mean() - values[12:].mean())


def test_adjusting_for_known_facts_reveals_a_hidden_difference() -> None:
    covariates = np.tile(np.arange(10.0), 2)[:, None]
    swarm, isolated = 0.1 * covariates[:10, 0] + 0.02, 0.1 * covariates[10:, 0]
    wobble = np.random.default_rng(0).normal(0, 0.005, 20)
    values = (swarm + wobble[:10]).tolist(), (isolated + wobble[10:]).tolist()
    assert claim_about(*values).verdict == "not_shown"
    assert claim_about(*values, covariates=covariates).verdict == "swarm_better"


def test_facts_that_do_not_vary_change_nothing() -> None:
    values = np.array([0.1, np.nan, 0.3])
    assert adjust(values, np.full((3, 2), 7.0)) is values


# ---- several models


def test_p_values_are_corrected_over_the_models_that_can_be_tested() -> None:
    first, second, third = compare(
        a=make_trial(BETTER, WORSE), b=make_trial(BETTER, []), c=make_trial(MIXED, MIXED)
    )
    assert first.family == second.family == third.family == ("a", "c")
    assert first.p_value is not None
    # Each has half of what is not reserved for later models.
    assert first.p_adjusted == pytest.approx(first.p_value / 0.45)
    assert (second.p_value, second.p_adjusted) == (None, None)
    assert third.p_adjusted == 1


def test_a_claim_that_does_not_survive_the_correction_is_not_made() -> None:
    trials = {f"model-{i}": make_trial(BETTER, WORSE) for i in range(7)}
    claims = compare_arms(trials, looks=[ROUNDS], trial_rounds=ROUNDS, seed=1)
    assert {claim.verdict for claim in claims} == {"not_shown"}


def test_a_later_model_does_not_change_earlier_p_values() -> None:
    alone = make_trial(BETTER, WORSE, looks=2)
    late = replace(alone, rounds=np.array([[0] * 10, [16] * 10]))
    (single,) = compare(looks=[16, ROUNDS], a=alone)
    first, second = compare(looks=[16, ROUNDS], a=alone, b=late)
    assert first.p_adjusted == single.p_adjusted
    assert second.p_value is not None
    assert second.p_adjusted == pytest.approx(second.p_value / 0.09 * 0.1, rel=0.01)


# ---- missing nodes and rounds


def test_four_nodes_in_an_arm_are_too_few() -> None:
    claim = claim_about([*BETTER, 0.1], WORSE[:4])
    assert claim.verdict == "too_few"
    assert claim.p_value is None
    assert claim.difference is not None
    assert claim.missing == Missing(swarm_nodes=0, isolated_nodes=1, rounds=3)


def test_nodes_with_two_rounds_do_not_count_yet() -> None:
    claim = claim_about(BETTER, WORSE, rounds=2)
    assert (claim.verdict, claim.n_swarm, claim.n_isolated) == ("too_few", 0, 0)
    assert claim.missing == Missing(swarm_nodes=0, isolated_nodes=0, rounds=1)


def test_an_empty_arm_has_no_difference() -> None:
    claim = claim_about(BETTER, [])
    assert (claim.difference, claim.interval, claim.verdict) == (None, None, "too_few")


def test_arms_that_a_fact_separates_completely_are_tested_without_a_claim() -> None:
    joined = [[0.0]] * 5 + [[3.0]] * 5
    claim = claim_about(BETTER, WORSE, covariates=joined)
    assert (claim.p_value, claim.verdict, claim.missing) == (1.0, "not_shown", None)
    assert (claim.interval, claim.spread) == (None, None)


@pytest.mark.parametrize("other", [0.1, -0.1])
def test_arms_without_any_spread_have_no_interval(other: float) -> None:
    claim = claim_about([0.1] * 6, [other] * 5)
    assert claim.interval is None
    assert claim.verdict == ("swarm_better" if other < 0 else "not_shown")


def test_a_season_without_models_claims_nothing() -> None:
    assert compare() == []


def test_claims_can_be_written_as_json() -> None:
    rng = np.random.default_rng(0)
    for claim in (claim_about(rng.normal(size=9).tolist(), WORSE), claim_about([], WORSE)):
        assert json.loads(json.dumps(asdict(claim)))["model"] == "tiny"
