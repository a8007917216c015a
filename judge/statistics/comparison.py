"""Comparison of the swarm and isolated nodes of each model within a season; no I/O.

The unit is a node. In a round, a node's deviation is its score minus the mean score of all trained
nodes of its model, so that hard rounds disadvantage nobody. The node's value is the mean of its
deviations. The value is adjusted for what was known of the node before the coin drew its arm
(`adjust`). What came later, such as the number of generated tokens, may be an effect of the arm and
is not adjusted for. At each planned look (`plan_looks`), the difference between the arms is
compared with the differences for other arms that the coin might have drawn
(`judge.statistics.randomisation`).

Nodes of a swarm influence each other, so they are not independent, and a randomisation test does
not assume that they are. If each node's arm was drawn by coin, the test is exact, over all looks
together, for Fisher's sharp null hypothesis: no node's score depends on any node's arm, its own or
another's. A rejection means that the arms had an effect on some nodes in this season. The test does
not separate the effect of a node's own arm from the effect of its peers' arms, which would take
another design (S. Athey, D. Eckles, G. W. Imbens, JASA 113, 2018).

The test is not valid for arms that owners chose, because owners who choose different arms may
differ otherwise. Nor is it valid if nodes stay or leave because of their arm. It says nothing about
other swarms: anything that affects one arm alone, such as an outage of its network, counts as part
of that arm in this season. To show that sharing helps swarms in general takes several seasons, each
of them one unit (`judge.statistics.over_seasons`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np
import numpy.typing as npt

from judge.statistics.planning import ScoreSpread, estimate_spread
from judge.statistics.randomisation import (
    Bits,
    Floats,
    compute_p_values,
    measure_gaps,
    shuffle_arms,
)
from swarm_record.stats import CONFIDENCE, Interval

ALPHA = 0.05
# Five against five can be shuffled in 252 ways; within blocks there are about a hundred.
MIN_NODES_PER_ARM = 5
MIN_ROUNDS = 3
# The fraction of the remaining ALPHA that is reserved for models that join the season later.
RESERVED = 0.1
# The arms are compared after these fractions of a trial; the same fractions of ALPHA are spent.
_LOOK_FRACTIONS = (
    Fraction(1, 32),
    Fraction(1, 16),
    *(Fraction(eighth, 8) for eighth in range(1, 9)),
)
# Deviations are fractions; a smaller spread than this is rounding.
_MIN_SPREAD = 1e-9

Verdict = Literal["swarm_better", "isolated_better", "not_shown", "too_few"]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ModelTrial:
    """The nodes of one model, and their results up to each look.

    `places` [nodes] has a pair for each node: the number of its block and its place in the block.
    `blocks` maps a block's number to the arms of its places, true for swarm. `deviations`
    [looks, nodes] are the nodes' mean deviations up to each look, as score fractions, NaN for a
    node without rounds. `rounds` [looks, nodes] are the numbers of rounds in these means.
    `covariates` [nodes, covariates] were known before the arms were drawn. `noise` [nodes] is the
    variance of a node's deviation from round to round.
    """

    places: Sequence[tuple[int, int]]
    blocks: Mapping[int, Sequence[bool]]
    deviations: Floats
    rounds: Ints
    covariates: Floats
    noise: Floats

    @property
    def swarm(self) -> Bits:
        """Whether each node's arm is swarm [nodes]."""
        return np.array([self.blocks[block][place] for block, place in self.places], dtype=bool)


@dataclass(frozen=True)
class Missing:
    """What a model still needs for a test: further nodes of each arm, and further rounds."""

    swarm_nodes: int
    isolated_nodes: int
    rounds: int


@dataclass(frozen=True)
class ArmsClaim:
    """What a season shows about one model; differences are swarm - isolated as score fractions.

    All values are as of the last look, `look` rounds into the season. The counts, the differences
    and `interval` are over nodes with at least MIN_ROUNDS rounds. `difference` is adjusted for
    covariates (`adjust`) if that is possible; `unadjusted` never is. `interval` is Welch's 95 %
    interval of the adjusted difference, for this model and this look alone. The p-values are valid
    at every look; `p_adjusted` is Holm-corrected over the models in `family`, and decides the
    verdict. `missing` is None if the last look has enough nodes and rounds for a test; otherwise
    `p_value`, `p_adjusted` and `spread` are None.
    """

    model: str
    n_swarm: int
    n_isolated: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    p_adjusted: float | None
    family: tuple[str, ...]
    verdict: Verdict
    missing: Missing | None
    unadjusted: float | None = None
    look: int = 0
    spread: ScoreSpread | None = None


@dataclass(frozen=True)
class _Tested:
    """The result of a model's test after all looks.

    `first` is the index of the first look at which the model was tested. `lead` is the difference
    swarm - isolated at the look at which the p-value first fell to `p_value`.
    """

    first: int
    p_value: float
    lead: float


def plan_looks(trial_rounds: int) -> list[int]:
    """Return the planned looks: the numbers of rounds after which arms are compared, ascending.

    There are at most ten, at fixed fractions of `trial_rounds`. Looks before MIN_ROUNDS rounds are
    left out.
    """
    planned = {ceil(fraction * trial_rounds) for fraction in _LOOK_FRACTIONS}
    return sorted(look for look in planned if look >= MIN_ROUNDS)


def alpha_per_model(*, models: int) -> float:
    """Return each model's significance level if all `models` are first tested at the same look."""
    return ALPHA * (1 - RESERVED) / models


def compare_arms(
    trials: Mapping[str, ModelTrial],
    *,
    looks: Sequence[int],
    trial_rounds: int,
    seed: int,
) -> list[ArmsClaim]:
    """Return one claim for each model, in the order of `trials`; `seed` seeds the arms' shuffling.

    `looks` are the looks of `plan_looks(trial_rounds)` that the season has reached. Before the
    first planned look, `looks` has only the current number of rounds, and nothing is tested. A
    model is tested from the first look at which 2 * MIN_NODES_PER_ARM of its nodes have at least
    MIN_ROUNDS rounds. The model's claim includes the result of the test only if MIN_NODES_PER_ARM
    nodes of each arm have at least MIN_ROUNDS rounds at the last look.
    """
    missing_rounds = max(0, plan_looks(trial_rounds)[0] - looks[-1])
    # The share of the error budget that each look [looks] may have used.
    spent = np.minimum(1, np.array(looks, dtype=np.float64) / trial_rounds)
    tested = {
        model: found
        for model, trial in trials.items()
        if not missing_rounds and (found := _test(trial, spent=spent, seed=seed)) is not None
    }
    adjusted = _adjust_by_holm(tested)
    claims = []
    for model, trial in trials.items():
        missing = _count_missing(trial, missing_rounds=missing_rounds)
        result = None if missing else tested.get(model)
        claims.append(_make_claim(model, trial, result, adjusted, missing=missing, look=looks[-1]))
    return claims


def _test(trial: ModelTrial, *, spent: Floats, seed: int) -> _Tested | None:
    """Return the result of a model's test; None if the model had too few nodes at every look.

    `spent` [looks] is the share of the error budget that may be used in all looks up to this one. A
    look is skipped if fewer than 2 * MIN_NODES_PER_ARM nodes have MIN_ROUNDS rounds. This rule
    ignores the arms, so the test stays exact.
    """
    values = np.stack(
        [adjust(_counted_values(trial, look), trial.covariates) for look in range(len(spent))]
    )
    ready = np.flatnonzero((~np.isnan(values)).sum(axis=1) >= 2 * MIN_NODES_PER_ARM)
    if not len(ready):
        return None
    labels = shuffle_arms(trial.places, trial.blocks, seed=seed)
    gaps = measure_gaps(labels, values[ready], minimum=MIN_NODES_PER_ARM)
    p_values = compute_p_values(gaps, spent=spent[ready])
    lead = _subtract_means(*_split(values[ready[np.argmin(p_values)]], trial.swarm))
    return _Tested(first=int(ready[0]), p_value=float(p_values[-1]), lead=lead or 0.0)


def _counted_values(trial: ModelTrial, look: int) -> Floats:
    """Return each node's mean deviation [nodes] at a look; NaN for nodes with too few rounds."""
    return np.where(trial.rounds[look] >= MIN_ROUNDS, trial.deviations[look], np.nan)


def adjust(values: Floats, covariates: Floats) -> Floats:
    """Return the residuals of `values` [nodes] after a linear regression on `covariates`.

    NaN stays NaN, and the mean of the other values is kept. The regression does not use the arms,
    so a test that shuffles arms stays exact (P. R. Rosenbaum, Statistical Science 17, 2002).
    """
    is_valid = ~np.isnan(values)
    regressors = _standardise(covariates[is_valid])
    if regressors.shape[1] == 0:
        return values
    residuals = np.full_like(values, np.nan)
    residuals[is_valid] = _compute_residuals(values[is_valid], regressors)
    return residuals


def _standardise(covariates: Floats) -> Floats:
    """Return the covariates without constant ones, scaled to mean 0 and standard deviation 1."""
    if not len(covariates):
        return covariates[:, :0]
    spread = covariates.std(axis=0)
    varying = spread > _MIN_SPREAD
    regressors: Floats = (covariates[:, varying] - covariates[:, varying].mean(axis=0)) / spread[
        varying
    ]
    return regressors


def _compute_residuals(values: Floats, regressors: Floats) -> Floats:
    """Return the residuals of `values` regressed on `regressors`, plus the mean of `values`.

    Each regressor has the mean 0, so the result has the mean of `values`.
    """
    slopes = np.linalg.lstsq(regressors, values - values.mean(), rcond=None)[0]
    residuals: Floats = values - regressors @ slopes
    return residuals


def _adjust_by_holm(tested: Mapping[str, _Tested]) -> dict[str, float]:
    """Return each tested model's p-value, adjusted over all tested models of the season.

    Each model gets a part of the error budget. Models that are first tested at the same look share
    nine tenths of the budget that is left then; one tenth is reserved for models that are first
    tested later. Holm's procedure allows such weights (S. Holm, Scandinavian Journal of Statistics
    6, 1979).
    """
    weights: dict[str, float] = {}
    budget = 1.0
    for first in sorted({each.first for each in tested.values()}):
        group = [model for model, each in tested.items() if each.first == first]
        weights |= dict.fromkeys(group, budget * (1 - RESERVED) / len(group))
        budget *= RESERVED
    adjusted: dict[str, float] = {}
    running_max, remaining = 0.0, sum(weights.values()) + budget
    for model in sorted(tested, key=lambda each: tested[each].p_value / weights[each]):
        running_max = max(running_max, min(1.0, tested[model].p_value * remaining / weights[model]))
        adjusted[model] = running_max
        remaining -= weights[model]
    return adjusted


def _make_claim(
    model: str,
    trial: ModelTrial,
    tested: _Tested | None,
    adjusted: Mapping[str, float],
    *,
    missing: Missing | None,
    look: int,
) -> ArmsClaim:
    """Return the claim about a model at the last look, after `look` rounds.

    `tested` is the result of the model's test, or None if the last look has too few nodes or rounds
    for a test; `missing` then says what the test needs. `adjusted` maps the names of all tested
    models to their adjusted p-values.
    """
    counted = _counted_values(trial, -1)
    is_valid = ~np.isnan(counted)
    swarm, isolated = _split(counted, trial.swarm)
    unadjusted = _subtract_means(swarm, isolated)
    adjusted_arms = _split(adjust(counted, trial.covariates), trial.swarm)
    difference, interval = _estimate(trial, is_valid, *adjusted_arms)
    rounds, noise = trial.rounds[-1][is_valid], trial.noise[is_valid]
    is_estimated = difference is not None and not missing
    spread = estimate_spread(adjusted_arms, rounds=rounds, noise=noise) if is_estimated else None
    p_adjusted = adjusted[model] if tested else None
    return ArmsClaim(
        model=model,
        n_swarm=len(swarm),
        n_isolated=len(isolated),
        difference=unadjusted if difference is None else difference,
        interval=interval,
        p_value=tested.p_value if tested else None,
        p_adjusted=p_adjusted,
        family=tuple(adjusted),
        verdict=decide(difference, p_adjusted, lead=tested.lead if tested else 0.0),
        missing=missing,
        unadjusted=unadjusted,
        look=look,
        spread=spread,
    )


def _estimate(
    trial: ModelTrial, is_valid: Bits, swarm: Floats, isolated: Floats
) -> tuple[float | None, Interval | None]:
    """Return the adjusted difference and its interval; each is None if it cannot be estimated.

    `swarm` and `isolated` are the residuals (`adjust`) of the nodes for which `is_valid` [nodes] is
    true.

    The regression on the covariates also removed the part of the arms' effect that correlates with
    the covariates. So the difference of the mean residuals is scaled up; the result equals the
    effect of the arm in a regression on arm and covariates.
    """
    arms, regressors = trial.swarm[is_valid], _standardise(trial.covariates[is_valid])
    if arms.all() or not arms.any():
        return None, None
    unexplained = float(_compute_residuals(arms.astype(np.float64), regressors).var() / arms.var())
    if unexplained < _MIN_SPREAD:
        return None, None
    difference = float(swarm.mean() - isolated.mean()) / unexplained
    interval = welch_interval(swarm, isolated)
    if interval is None:
        return difference, None
    half = (interval[1] - interval[0]) / 2 / unexplained
    return difference, (difference - half, difference + half)


def _split(values: Floats, swarm: Bits) -> tuple[Floats, Floats]:
    """Return the values of swarm and isolated nodes, without NaN."""
    is_valid = ~np.isnan(values)
    return values[is_valid & swarm], values[is_valid & ~swarm]


def _subtract_means(swarm: Floats, isolated: Floats) -> float | None:
    return float(swarm.mean() - isolated.mean()) if len(swarm) and len(isolated) else None


def _count_missing(trial: ModelTrial, *, missing_rounds: int) -> Missing | None:
    """Return what a model still needs for a test at the last look, or None if nothing is missing.

    `missing_rounds` is the number of rounds until the first planned look.
    """
    arms = [
        np.sort(trial.rounds[-1][(trial.rounds[-1] > 0) & label])[::-1]
        for label in (trial.swarm, ~trial.swarm)
    ]
    # The rounds of the node that completes an arm's minimum, 0 while the arm has too few nodes.
    rounds = min(
        int(arm[MIN_NODES_PER_ARM - 1]) if len(arm) >= MIN_NODES_PER_ARM else 0 for arm in arms
    )
    if rounds >= MIN_ROUNDS and not missing_rounds:
        return None
    swarm, isolated = (max(0, MIN_NODES_PER_ARM - len(arm)) for arm in arms)
    missing = max(missing_rounds, MIN_ROUNDS - rounds)
    return Missing(swarm_nodes=swarm, isolated_nodes=isolated, rounds=missing)


def decide(difference: float | None, p_value: float | None, *, lead: float) -> Verdict:
    """Return the verdict on the two arms of a comparison.

    If `p_value` is None, the verdict is "too_few". An arm is better ("swarm_better" or
    "isolated_better") if the p-value is at most ALPHA, and `difference` (swarm - isolated) and
    `lead` are both positive or both negative. Otherwise the verdict is "not_shown", also if
    `difference` is None because it cannot be estimated.

    `lead` has the sign that the difference had at the look at which the p-value first fell to its
    present value.
    """
    if p_value is None:
        return "too_few"
    if difference is None or p_value > ALPHA or difference * lead <= 0:
        return "not_shown"
    return "swarm_better" if difference > 0 else "isolated_better"


def welch_interval(swarm: Floats, isolated: Floats) -> Interval | None:
    """Return Welch's 95 % interval of the difference of means, swarm - isolated.

    None if either arm has fewer than two nodes, or if within either arm all nodes have the same
    value. Source: B. L. Welch, Biometrika 34, 1947.
    """
    # Imported here: it takes most of a second, and few processes need it.
    from scipy.stats import ttest_ind

    if not all(len(arm) > 1 and np.ptp(arm) > _MIN_SPREAD for arm in (swarm, isolated)):
        return None
    interval = ttest_ind(swarm, isolated, equal_var=False).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)
