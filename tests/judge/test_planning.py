"""How many nodes a claim needs, compared with simulated trials."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from bench.calibration.trials import assign_arms
from judge.statistics.comparison import ModelTrial, alpha_per_model, compare_arms, plan_looks
from judge.statistics.planning import POWER, ScoreSpread, estimate_spread, find_effect, plan_nodes

SPREAD = ScoreSpread(nodes=0.05, rounds=0.1)


def play(rng: np.random.Generator, *, nodes: int, rounds: int, effect: float) -> list[np.ndarray]:
    """Return the mean deviations of both arms' nodes."""
    return [
        rng.normal(shift, SPREAD.nodes, nodes)
        + rng.normal(0, SPREAD.rounds, (nodes, rounds)).mean(axis=1)
        for shift in (effect, 0.0)
    ]


@pytest.mark.parametrize(("effect", "rounds"), [(0.05, 10), (0.1, 10), (0.05, 200)])
def test_the_planned_nodes_detect_the_difference_in_four_of_five_trials(
    effect: float, rounds: int
) -> None:
    nodes = plan_nodes(effect, spread=SPREAD, rounds=rounds, alpha=0.045, minimum=2)
    rng = np.random.default_rng(1)
    arms = (play(rng, nodes=nodes, rounds=rounds, effect=effect) for _ in range(1_000))
    shown = np.mean([ttest_ind(*both).pvalue <= 0.045 for both in arms])
    # The nodes are the fewest that reach POWER; within three standard errors.
    assert POWER - 0.04 < shown < POWER + 0.1


@pytest.mark.slow
def test_the_judges_ten_looks_detect_the_difference_with_the_planned_nodes() -> None:
    rounds, level = 32, alpha_per_model(models=1)
    nodes = plan_nodes(0.08, spread=SPREAD, rounds=rounds, alpha=level, minimum=5)
    looks, shown = plan_looks(rounds), 0
    for number in range(80):
        rng = np.random.default_rng(number)
        blocks, places = assign_arms(rng, 2 * nodes)
        swarm = np.array([blocks[block][place] for block, place in places])
        scores = np.where(swarm, 0.08, 0) + rng.normal(0, SPREAD.nodes, 2 * nodes)
        single = rng.normal(0, SPREAD.rounds, (rounds, 2 * nodes)) + scores
        sums = single.cumsum(axis=0)[np.array(looks) - 1]
        trial = ModelTrial(
            places=places,
            blocks=blocks,
            deviations=sums / np.array(looks)[:, None],
            rounds=np.array(looks)[:, None].repeat(2 * nodes, axis=1),
            covariates=np.zeros((2 * nodes, 1)),
            noise=single.var(axis=0),
        )
        (claim,) = compare_arms({"": trial}, looks=looks, trial_rounds=rounds, seed=number)
        shown += claim.verdict == "swarm_better"
    # Three standard errors below POWER; with few nodes, blocks cost a little power.
    assert 0.66 < shown / 80 < 0.95


def test_the_smallest_difference_agrees_with_the_planned_nodes() -> None:
    effect = find_effect(20, spread=SPREAD, rounds=50, alpha=0.045)
    assert plan_nodes(effect, spread=SPREAD, rounds=50, alpha=0.045, minimum=2) == 20


def test_more_rounds_save_nodes_until_only_permanent_differences_remain() -> None:
    needed = [
        plan_nodes(0.05, spread=SPREAD, rounds=rounds, alpha=0.05, minimum=2)
        for rounds in (1, 10, 100, 10_000)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[3] > 10


def test_an_arm_has_no_fewer_nodes_than_a_test_needs() -> None:
    assert plan_nodes(0.9, spread=SPREAD, rounds=50, alpha=0.05, minimum=5) == 5


def test_the_spread_is_estimated_from_results() -> None:
    rng = np.random.default_rng(2)
    arms = play(rng, nodes=4_000, rounds=20, effect=0.3)
    spread = estimate_spread(arms, rounds=np.full(8_000, 20), noise=np.full(8_000, 0.01))
    assert spread is not None
    assert spread.nodes == pytest.approx(0.05, rel=0.05)
    assert spread.rounds == pytest.approx(0.1)


def test_one_node_per_arm_gives_no_spread() -> None:
    arms = [np.array([0.1]), np.array([0.2])]
    assert estimate_spread(arms, rounds=np.array([5, 5]), noise=np.array([0.1, 0.1])) is None
