"""What the judge's statistics promise, tried out on simulated nodes; every seed is fixed."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.stats import binom

from bench.trials import Plan, play_trial
from judge.comparison import Claim, compare_arms, plan_looks
from judge.ranking import Record, rank_nodes
from judge.stats import effective_n, macro_intervals

pytestmark = pytest.mark.slow

Floats = npt.NDArray[np.float64]


# ---- identical nodes are not told apart, however often one looks


def judge_season(
    rng: np.random.Generator, shares: Floats, *, mix: Sequence[int], rounds: int, missing: float = 0
) -> Record:
    """Return what nodes did in a season of rounds with `mix` questions of each dataset.

    `shares` [nodes, datasets] are the nodes' true shares; in each round some questions are harder
    for everybody, and each node misses this share of the rounds.
    """
    weights = np.concatenate([np.full(n, 1 / (len(mix) * n)) for n in mix])
    chances = np.repeat(shares, mix, axis=1)[:, None, :]
    ease = rng.beta(2, 2, (1, rounds, sum(mix))) * 2
    solved = rng.random((len(shares), rounds, sum(mix))) < np.minimum(chances * ease, 1)
    values = np.where(solved, weights, 0).astype(np.float32)
    values[rng.random((len(shares), rounds)) < missing] = np.nan
    return Record(
        values=values.reshape(len(shares), -1),
        weights=np.tile(weights, rounds).astype(np.float32),
        rounds=np.repeat(np.arange(rounds), sum(mix)),
        questions=rounds * sum(mix),
    )


def has_winner(record: Record, *, rounds: int, of: int) -> bool:
    """Tell whether one node is ranked above another after the first `rounds` of all rounds."""
    columns = record.values.shape[1] * rounds // of
    seen = Record(
        record.values[:, :columns], record.weights[:columns], record.rounds[:columns], columns
    )
    best, _ = rank_nodes(seen, np.nansum(seen.values, axis=1).astype(np.float64))
    return bool((best > 1).any())


@pytest.mark.parametrize("missing", [0, 0.3])
@pytest.mark.parametrize("mix", [(8, 8, 8, 8), (28, 1, 1, 1, 1)])
@pytest.mark.parametrize(("p", "nodes"), [(0.3, 2), (0.02, 2), (0.3, 10), (0.02, 10)])
def test_a_season_of_identical_nodes_seldom_ever_shows_a_winner(
    p: float, nodes: int, mix: tuple[int, ...], missing: float
) -> None:
    rng = np.random.default_rng([nodes, int(100 * p), len(mix), int(10 * missing)])
    shares = np.full((nodes, len(mix)), p)
    seasons = [judge_season(rng, shares, mix=mix, rounds=30, missing=missing) for _ in range(60)]
    won = [any(has_winner(each, rounds=at, of=30) for at in range(1, 31)) for each in seasons]
    # Of 60 seasons at a true share of .05, one in a hundred has more than eight.
    assert sum(won) <= 8


def test_equal_scores_of_unlike_nodes_have_no_winner_where_datasets_differ_in_size() -> None:
    """One node is better at the 27 questions of a round, the other by as much at the other 5."""
    rng = np.random.default_rng(6)
    shares = np.array([[0.4, 0.2], [0.3, 0.3]])
    seasons = [judge_season(rng, shares, mix=(27, 5), rounds=32) for _ in range(200)]
    assert np.mean([has_winner(each, rounds=32, of=32) for each in seasons]) <= 0.05


# ---- intervals hold the true score


@pytest.mark.parametrize("n", [50, 100, 500])
def test_interval_of_one_dataset_holds_the_true_score_wherever_it_is(n: int) -> None:
    solved = np.arange(n + 1)
    lows, highs = macro_intervals(solved / n, np.full(n + 1, n))
    for p in np.linspace(0.005, 0.995, 199):
        covered = (lows <= p) & (p <= highs)
        assert binom.pmf(solved, n, p)[covered].sum() >= 0.95


@pytest.mark.parametrize(
    "sizes", [(28, 1, 1, 1, 1), (16, 4, 4, 4, 4), (280, 10, 10, 10, 10), (8,) * 8]
)
def test_interval_of_several_datasets_holds_the_true_score_wherever_the_shares_are(
    sizes: tuple[int, ...],
) -> None:
    rng = np.random.default_rng(sum(sizes))
    effective = effective_n({f"dataset-{i}": (0, size) for i, size in enumerate(sizes)})
    even = [np.full(len(sizes), p) for p in (0.01, 0.02, 0.05, 0.1, 0.3, 0.5, 0.9, 0.98)]
    drawn = [rng.beta(0.3, 0.3, len(sizes)) for _ in range(20)]
    split = [np.array([end, *[0.5] * (len(sizes) - 1)]) for end in (0.0, 1.0)]
    for shares in [*even, *drawn, *split]:
        # 20,000 windows: the simulation's own error is .0015.
        scores = (rng.binomial(sizes, shares, (20_000, len(sizes))) / sizes).mean(axis=1)
        lows, highs = macro_intervals(scores, np.full(len(scores), effective))
        assert np.mean((lows <= shares.mean()) & (shares.mean() <= highs)) >= 0.945


# ---- different nodes are


def test_clearly_different_nodes_are_told_apart_within_a_few_rounds() -> None:
    rng = np.random.default_rng(3)
    shares = np.repeat([[0.2], [0.6]], 6, axis=0)
    for _ in range(20):
        record = judge_season(rng, shares, mix=(32,), rounds=16)
        best, worst = rank_nodes(record, np.sum(record.values, axis=1).astype(np.float64))
        assert best[6:].max() < 7 <= best[:6].min()
        assert worst[6:].max() < 7


# ---- arms that do nothing are not claimed to


def claims_of_season(rng: np.random.Generator, plan: Plan) -> list[Claim]:
    trials = {f"{nodes} nodes": play_trial(rng, replace(plan, nodes=nodes)) for nodes in (12, 16)}
    looks = plan_looks(plan.rounds)
    return compare_arms(trials, looks=looks, trial_rounds=plan.rounds, seed=int(rng.integers(9)))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(rounds=48, spread=0),
        Plan(rounds=48, spread=0.8, late=0.4, leaving=0.3, missing=0.2, known=0.5),
    ],
)
def test_seasons_without_an_effect_seldom_ever_make_a_claim(plan: Plan) -> None:
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
