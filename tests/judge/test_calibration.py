"""The guarantees of the judge's statistics, checked with simulated nodes and fixed seeds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from bench.calibration.trials import Plan, simulate_trial
from judge.statistics.comparison import ArmsClaim, compare_arms, plan_looks
from swarm_record.ranking import ResultMatrix, rank_nodes
from swarm_record.stats import effective_n, macro_intervals

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]


# ---- identical nodes are not ranked apart, at any number of looks


def judge_season(
    rng: np.random.Generator,
    shares: Floats,
    *,
    mix: Sequence[int],
    rounds: int,
    missing: float = 0,
    ease: tuple[float, float] = (0, 2),
) -> ResultMatrix:
    """Return what nodes did in a season of rounds with `mix` questions of each dataset.

    `shares` [nodes, datasets] are the nodes' true shares; in each round some questions are harder
    for all nodes, by a factor within `ease`, and each node misses this share of the rounds.
    """
    weights = np.concatenate([np.full(n, 1 / (len(mix) * n)) for n in mix])
    chances = np.repeat(shares, mix, axis=1)[:, None, :]
    least, most = ease
    factors = least + (most - least) * rng.beta(2, 2, (1, rounds, sum(mix)))
    solved = rng.random((len(shares), rounds, sum(mix))) < np.minimum(chances * factors, 1)
    values = np.where(solved, weights, 0).astype(np.float32)
    values[rng.random((len(shares), rounds)) < missing] = np.nan
    return ResultMatrix(
        values=values.reshape(len(shares), -1),
        weights=np.tile(weights, rounds).astype(np.float32),
        rounds=np.repeat(np.arange(rounds), sum(mix)),
        questions=rounds * sum(mix),
    )


def has_winner(matrix: ResultMatrix, *, rounds: int, of: int) -> bool:
    """Tell whether one node is ranked above another after the first `rounds` of all rounds."""
    columns = matrix.values.shape[1] * rounds // of
    seen = ResultMatrix(
        matrix.values[:, :columns], matrix.weights[:columns], matrix.rounds[:columns], columns
    )
    best, _ = rank_nodes(seen, np.nansum(seen.values, axis=1).astype(np.float64))
    return bool((best > 1).any())


@pytest.mark.parametrize(("mix", "missing"), [((8, 8, 8, 8), 0.3), ((28, 1, 1, 1, 1), 0)])
@pytest.mark.parametrize(("p", "nodes"), [(0.3, 2), (0.02, 2), (0.3, 10), (0.02, 10)])
def test_a_season_of_identical_nodes_rarely_shows_a_winner_at_any_time(
    p: float, nodes: int, mix: tuple[int, ...], missing: float
) -> None:
    rng = np.random.default_rng([nodes, int(100 * p), len(mix), int(10 * missing)])
    shares = np.full((nodes, len(mix)), p)
    seasons = [judge_season(rng, shares, mix=mix, rounds=30, missing=missing) for _ in range(60)]
    won = [any(has_winner(each, rounds=at, of=30) for at in range(1, 31)) for each in seasons]
    # Of 60 seasons at a true share of .05, one in a hundred has more than eight.
    assert sum(won) <= 8


@pytest.mark.parametrize(
    ("mix", "one", "other"),
    [
        ((27, 5), (0.4, 0.2), (0.3, 0.3)),
        ((31, 1), (0.06, 0), (0, 0.06)),
        ((27, 5), (0.97, 1), (1, 0.97)),
        ((28, 1, 1, 1, 1), (0.1, 0, 0, 0, 0), (0, 0.025, 0.025, 0.025, 0.025)),
        ((7, 7, 7, 7, 1), (0.05, 0.05, 0.05, 0.05, 0), (0, 0, 0, 0, 0.2)),
    ],
)
def test_different_nodes_with_equal_scores_rarely_have_a_winner_at_any_time(
    mix: tuple[int, ...], one: tuple[float, ...], other: tuple[float, ...]
) -> None:
    """One node is better at a frequent dataset, the other by as much at a rare one."""
    rng = np.random.default_rng(sum(mix))
    shares = np.array([one, other])
    seasons = [judge_season(rng, shares, mix=mix, rounds=30, ease=(1, 1)) for _ in range(60)]
    won = [any(has_winner(each, rounds=at, of=30) for at in range(1, 31)) for each in seasons]
    # Of 60 seasons at a true share of .05, one in a hundred has more than eight.
    assert sum(won) <= 8


# ---- intervals cover the true score


@pytest.mark.parametrize("n", [50, 100, 500])
def test_interval_of_one_dataset_covers_any_true_score(n: int) -> None:
    solved = np.arange(n + 1)
    lows, highs = macro_intervals(solved / n, np.full(n + 1, n))
    for p in np.linspace(0.005, 0.995, 199):
        covered = (lows <= p) & (p <= highs)
        assert binom.pmf(solved, n, p)[covered].sum() >= 0.95


def share_covered(
    rng: np.random.Generator, sizes: Sequence[int], shares: Sequence[float] | Floats
) -> float:
    """Return the coverage of the interval over 4,000 windows, so ± .0035."""
    solved = rng.binomial(sizes, shares, (4000, len(sizes)))
    cells = [dict(enumerate(zip(row, sizes, strict=True))) for row in solved.tolist()]
    scores = (solved / sizes).mean(axis=1)
    lows, highs = macro_intervals(
        scores, [effective_n({str(at): cell for at, cell in each.items()}) for each in cells]
    )
    true = np.mean(shares)
    return float(np.mean((lows <= true) & (true <= highs)))


@pytest.mark.parametrize(
    "sizes", [(28, 1, 1, 1, 1), (16, 4, 4, 4, 4), (280, 10, 10, 10, 10), (8,) * 8]
)
def test_interval_of_several_datasets_covers_the_true_score_for_any_shares(
    sizes: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(sum(sizes))
    even = [np.full(len(sizes), p) for p in (0.01, 0.1, 0.3, 0.5, 0.98)]
    drawn = [rng.beta(0.3, 0.3, len(sizes)) for _ in range(6)]
    split = [np.array([end, *[0.5] * (len(sizes) - 1)]) for end in (0.0, 1.0)]
    for shares in [*even, *drawn, *split]:
        assert share_covered(rng, sizes, shares) >= 0.94


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ((700, 700, 700, 700, 100), (0, 0, 0, 0, 0.2)),
        ((700, 700, 700, 700, 100), (0.02, 0.02, 0.02, 0.02, 0.5)),
        ((3100, 100), (0, 0.1)),
        ((878, 146), (0.02, 0.4)),
    ],
)
def test_interval_covers_the_true_score_when_a_small_dataset_decides_it(
    sizes: tuple[int, ...], shares: tuple[float, ...]
) -> None:
    assert share_covered(np.random.default_rng(sum(sizes)), sizes, shares) >= 0.94


# ---- different nodes are ranked apart


def test_clearly_different_nodes_are_ranked_apart_within_a_few_rounds() -> None:
    rng = np.random.default_rng(3)
    shares = np.repeat([[0.2], [0.6]], 6, axis=0)
    for _ in range(20):
        matrix = judge_season(rng, shares, mix=(32,), rounds=16)
        best, worst = rank_nodes(matrix, np.sum(matrix.values, axis=1).astype(np.float64))
        assert best[6:].max() < 7 <= best[:6].min()
        assert worst[6:].max() < 7


# ---- arms without an effect lead to no claim


def claims_of_season(rng: np.random.Generator, plan: Plan) -> list[ArmsClaim]:
    trials = {
        f"{nodes} nodes": simulate_trial(rng, replace(plan, nodes=nodes)) for nodes in (12, 16)
    }
    looks = plan_looks(plan.rounds)
    return compare_arms(trials, looks=looks, trial_rounds=plan.rounds, seed=int(rng.integers(9)))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(rounds=48, spread=0),
        Plan(rounds=48, spread=0.8, late=0.4, leaving=0.3, missing=0.2, known=0.5),
    ],
)
def test_seasons_without_an_effect_rarely_make_a_claim_at_any_time(plan: Plan) -> None:
    rng = np.random.default_rng(4)
    seasons = [claims_of_season(rng, plan) for _ in range(60)]
    ever = [any((each.p_adjusted or 1) <= 0.05 for each in claims) for claims in seasons]
    tested = sum(each.missing is None for claims in seasons for each in claims)
    # Of 60 seasons at a true share of .05, one in a hundred has more than eight.
    assert sum(ever) <= 8
    assert tested > 60


def test_seasons_with_a_large_effect_make_the_claim() -> None:
    rng = np.random.default_rng(5)
    plan = Plan(rounds=96, spread=0.2, gain=3, late=0.3, known=1)
    claims = [claim for _ in range(10) for claim in claims_of_season(rng, plan)]
    assert sum(claim.verdict == "swarm_better" for claim in claims) >= 17
    assert not [claim for claim in claims if claim.verdict == "isolated_better"]
