"""Check the claims of "Does sharing help?" on simulated trials (`bench.calibration.trials`).

It is a part of `make bench-calibration`.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np
from rich.table import Table

from bench.calibration.trials import Floats, Plan, claims_of_one_look_test, simulate_trial
from bench.report import Target
from judge.statistics.comparison import ALPHA, alpha_per_model, compare_arms, plan_looks
from judge.statistics.over_seasons import MIN_SEASONS, compare_seasons
from judge.statistics.planning import ScoreSpread, plan_nodes

TRIALS = 400
# Number of sequences of seasons whose differences are drawn, and the seasons in each.
SIZES_DRAWN, MAX_SEASONS = 5, 10
# How many times as fast swarm nodes learn in the trials with an effect.
GAIN = 1.94

TARGETS = [
    Target(
        "sharing_claim_ever_worst", "trials without an effect that ever show one", "", at_most=ALPHA
    ),
]


def measure(figures: dict[str, float]) -> list[Table]:
    """Measure everything, add the figures to `figures`, and return the tables."""
    claims = Table("trials", "one look", "made at each", "ours", title="Does sharing help? Claims")
    worst = 0.0
    for words, plan, models in _plans():
        last, each, ours = measure_claims(plan, models=models)
        claims.add_row(words, f"{last:.1%}", f"{each:.1%}", f"{ours:.1%}")
        figures |= {f"sharing, {words}, before": each, f"sharing, {words}": ours}
        if plan.gain == 1 and not plan.hit:
            worst = max(worst, ours)
    seasons = Table("chance hits", "one look after each", "ours", title="Claims over seasons")
    for spread in (0.0, 0.05):
        usual, ours = measure_seasons(spread)
        seasons.add_row(f"one arm by {spread:g}", f"{usual:.1%}", f"{ours:.1%}")
        figures[f"sharing over seasons, an arm hit by {spread:g}"] = ours
        worst = max(worst, ours)
    figures["sharing_claim_ever_worst"] = worst
    return [claims, seasons, _plan_table()]


def measure_claims(plan: Plan, *, models: int) -> tuple[float, float, float]:
    """Return three fractions of trials in which a test claims a difference between the arms.

    The first fraction is for `claims_of_one_look_test` at the last look, the second for this test
    at any look, the third for the judge's test at any look. A trial counts if there is a claim
    about any of its models. Only the judge's test corrects for the number of models.
    """
    last, each, ours = 0, 0, 0
    looks = plan_looks(plan.rounds)
    for number in range(TRIALS):
        rng = np.random.default_rng([number, plan.nodes])
        trials = {f"model-{i}": simulate_trial(rng, plan) for i in range(models)}
        usual = [claims_of_one_look_test(trial) for trial in trials.values()]
        each += any(ever for ever, _ in usual)
        last += any(at_last for _, at_last in usual)
        claims = compare_arms(trials, looks=looks, trial_rounds=plan.rounds, seed=number)
        ours += any(c.p_adjusted is not None and c.p_adjusted <= ALPHA for c in claims)
    return last / TRIALS, each / TRIALS, ours / TRIALS


def measure_seasons(hit: float) -> tuple[float, float]:
    """Return how often two tests over seasons ever claim an effect although sharing has none.

    SIZES_DRAWN sequences of MAX_SEASONS differences between the arms are drawn. Each difference is
    the sum of two normal variates with the standard deviations 0.03 and `hit`. A case is one of
    these sequences with one combination of signs. The first figure is the fraction of cases in
    which a sign-flip test claims an effect. This test is made after each season from the
    MIN_SEASONS-th on, although it is valid for one look only. The second figure is the fraction of
    cases in which the judge's test claims an effect.
    """
    signs = np.array(list(product((1, -1), repeat=MAX_SEASONS)))
    usual, ours = [], []
    for number in range(SIZES_DRAWN):
        rng = np.random.default_rng(number)
        gaps = rng.normal(0, 0.03, MAX_SEASONS) + rng.normal(0, hit, MAX_SEASONS)
        sums = np.abs((signs * gaps).cumsum(axis=1)).round(12)[:, MIN_SEASONS - 1 :]
        ranks = [(sums >= each).mean(axis=0) for each in sums]
        usual += [bool((each <= ALPHA).any()) for each in ranks]
        claims = (compare_seasons(_name(gaps * way)) for way in signs)
        ours += [claim.p_value is not None and claim.p_value <= ALPHA for claim in claims]
    return float(np.mean(usual)), float(np.mean(ours))


def _name(gaps: Floats) -> dict[str, float]:
    return {str(number): float(gap) for number, gap in enumerate(gaps)}


def _plans() -> Iterator[tuple[str, Plan, int]]:
    """Yield kinds of trials: a label, the plan of each model, and the number of models."""
    yield "10 nodes that are alike", Plan(spread=0), 1
    yield "10 nodes that differ", Plan(), 1
    yield "20 nodes, half of them late, 30% leave", Plan(nodes=20, late=0.5, leaving=0.3), 1
    yield "20 nodes, half of them known", Plan(nodes=20, late=0.5, missing=0.3, known=0.5), 1
    yield "4 models of 12 nodes", Plan(nodes=12), 4
    yield "10 nodes, an arm hit by .02", Plan(hit=0.02), 1
    yield "10 nodes, an arm hit by .05", Plan(hit=0.05), 1
    yield "10 nodes, swarm 94% faster", Plan(gain=GAIN), 1
    yield "10 nodes, all known, 94% faster", Plan(gain=GAIN, known=1), 1
    yield "20 nodes, 94% faster", Plan(nodes=20, gain=GAIN), 1
    yield "20 nodes, half late, 94% faster", Plan(nodes=20, late=0.5, gain=GAIN), 1
    yield "20 nodes, half late, all known, 94% faster", Plan(20, late=0.5, known=1, gain=GAIN), 1


def _plan_table() -> Table:
    """Return a table of the nodes per arm that are needed to detect three sizes of difference."""
    spread = ScoreSpread(nodes=0.05, rounds=0.08)
    table = Table("difference", "25 rounds", "200 rounds", title="Nodes in each arm, spread .05")
    for effect in (0.02, 0.05, 0.1):
        needed = (
            plan_nodes(
                effect, spread=spread, rounds=rounds, alpha=alpha_per_model(models=1), minimum=5
            )
            for rounds in (25, 200)
        )
        table.add_row(f"{effect:g}", *map(str, needed))
    return table
