"""What the judge's statistics promise, tried out on simulated nodes; every seed is fixed."""

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from judge.comparison import Claim, Unit, compare_arms
from judge.ranking import rank_nodes
from judge.stats import effective_n, macro_intervals

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]


# ---- identical nodes are not told apart


def draw_difficulties(rng: np.random.Generator, *, p: float, questions: int) -> Floats:
    """Return each question's share of solvers, `p` on average: many are easy or hard for all."""
    return rng.beta(2 * p, 2 * (1 - p), questions)


def claims_a_winner(rng: np.random.Generator, *, p: float, nodes: int, questions: int) -> bool:
    """Judge identical nodes on one round; say whether one of them is ranked above another."""
    difficulties = draw_difficulties(rng, p=p, questions=questions)
    solved = rng.random((nodes, questions)) < difficulties
    best, _ = rank_nodes(solved, np.ones_like(solved), solved.mean(axis=1))
    return bool((best > 1).any())


@pytest.mark.parametrize(
    ("p", "nodes", "questions"),
    [
        (0.3, 12, 16),
        (0.3, 30, 16),
        (0.05, 20, 16),
        (0.9, 20, 16),
        (0.3, 12, 512),
        (0.3, 30, 512),
        (0.05, 12, 512),
        (0.9, 12, 512),
    ],
)
def test_rounds_of_identical_nodes_seldom_have_a_winner(
    p: float, nodes: int, questions: int
) -> None:
    # The true share must be well below .05 for 1,000 rounds to pass, and it is: exact p-values
    # are discrete, and pairs with a node in common are correlated.
    rng = np.random.default_rng([nodes, questions, int(100 * p)])
    rounds = [claims_a_winner(rng, p=p, nodes=nodes, questions=questions) for _ in range(1_000)]
    assert np.mean(rounds) <= 0.05


# ---- intervals hold the true score


MEANS_AND_SIZES = [(p, n) for p in (0.02, 0.3, 0.9) for n in (50, 500)]


@pytest.mark.parametrize(("p", "n"), MEANS_AND_SIZES)
def test_interval_of_one_dataset_holds_the_true_score(p: float, n: int) -> None:
    solved = np.arange(n + 1)
    lows, highs = macro_intervals(solved / n, np.full(n + 1, n))
    covered = (lows <= p) & (p <= highs)
    assert binom.pmf(solved, n, p)[covered].sum() >= 0.94


@pytest.mark.parametrize("spread", [0.0, 1.0])
@pytest.mark.parametrize(("p", "n"), MEANS_AND_SIZES)
def test_interval_of_eight_datasets_holds_the_true_score(p: float, n: int, spread: float) -> None:
    # 100,000 windows: the simulation's own error is .0007.
    rng = np.random.default_rng([n, int(100 * p)])
    sizes = np.full(8, n // 8)
    sizes[: n % 8] += 1
    shares = p + spread * min(p, 1 - p) * np.linspace(-1, 1, 8)
    scores = (rng.binomial(sizes, shares, (100_000, 8)) / sizes).mean(axis=1)
    effective = effective_n({f"dataset-{i}": (0, int(size)) for i, size in enumerate(sizes)})
    lows, highs = macro_intervals(scores, np.full(len(scores), effective))
    assert np.mean((lows <= p) & (p <= highs)) >= 0.94


# ---- different nodes are


def test_clearly_different_nodes_are_told_apart_in_every_round() -> None:
    rng = np.random.default_rng(3)
    skill = np.repeat([0.2, 0.6], 6)
    for _ in range(50):
        solved = rng.random((12, 512)) < skill[:, None]
        best, worst = rank_nodes(solved, np.ones_like(solved), solved.mean(axis=1))
        assert best[6:].max() < 7 <= best[:6].min()
        assert worst[6:].max() < 7


# ---- arms that do nothing are not claimed to


def simulate_units(
    rng: np.random.Generator, *, nodes: int, rounds: int = 8, questions: int = 64
) -> list[Unit]:
    """Return a model's season in which arms, drawn by shuffling, change nothing.

    Nodes differ, rounds differ, and every node misses a fifth of them.
    """
    skill, ease = rng.normal(0, 0.05, (nodes, 1)), rng.normal(0, 0.1, rounds)
    scores = rng.binomial(questions, np.clip(0.3 + skill + ease, 0, 1)) / questions
    scores[rng.random(scores.shape) < 0.2] = np.nan
    deviations = scores - np.nanmean(scores, axis=0)
    arms = rng.permutation((["swarm", "isolated"] * nodes)[:nodes])
    return [
        Unit(
            node=f"node-{i}",
            arm=str(arms[i]),
            deviation=float(np.nanmean(deviations[i])),
            rounds=int(np.isfinite(deviations[i]).sum()),
        )
        for i in range(nodes)
        if np.isfinite(deviations[i]).any()
    ]


def claims_of_season(rng: np.random.Generator) -> list[Claim]:
    models = {f"{nodes} nodes": simulate_units(rng, nodes=nodes) for nodes in (10, 11, 12)}
    return compare_arms(models, seed=1)


def test_seasons_without_an_effect_seldom_make_a_claim() -> None:
    # Of 300 seasons at a true share of .05, one in forty has more than .05 + 2 · .0126.
    rng = np.random.default_rng(4)
    seasons = [claims_of_season(rng) for _ in range(300)]
    claimed = [any(claim.verdict.endswith("_better") for claim in claims) for claims in seasons]
    tested = [claim.family for claims in seasons for claim in claims if claim.missing is None]
    assert np.mean(claimed) <= 0.05 + 2 * 0.0126
    assert len(tested) > 800


def test_seasons_with_a_large_effect_make_the_claim() -> None:
    rng = np.random.default_rng(5)
    for _ in range(20):
        units = simulate_units(rng, nodes=24)
        helped = [
            Unit(
                node=unit.node,
                arm=unit.arm,
                deviation=unit.deviation + (0.2 if unit.arm == "swarm" else 0.0),
                rounds=unit.rounds,
            )
            for unit in units
        ]
        (claim,) = compare_arms({"tiny": helped}, seed=1)
        assert claim.verdict == "swarm_better"
