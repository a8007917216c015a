"""Swarm against isolated: what a season, and what several seasons, show about a model; pure.

Within a season the unit is a node. Its number is its mean deviation: its score in a round minus
the mean score of all nodes of its model in that round, averaged over its rounds, so that hard
rounds harm nobody. The arms' labels are then shuffled (`compare_arms`).

What that test is valid for: nodes of a swarm feed on each other, so they are no independent
copies, and a randomisation test does not take them for such. Where each node's arm was drawn by
coin it is exact for Fisher's sharp null hypothesis: no node's score depends on anybody's arm, its
own or another's (R. A. Fisher, The Design of Experiments, 1935). Rejecting says that the arms did
something to somebody in this season. Which part of it a node's own arm did, and which its peers,
is no sharp hypothesis and would take other designs (S. Athey, D. Eckles, G. W. Imbens, JASA 113,
2018).

What it is not valid for: arms that people chose, since those who choose differ; nodes that stay or
leave because of their arm; and any other swarm, because a season is one swarm. Whether sharing
helps swarms takes several seasons, each of them one unit (`compare_seasons`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from swarm_record.stats import CONFIDENCE, Interval, adjust_by_holm

ALPHA = 0.05
# Five against five can be shuffled in 252 ways: a p-value of 2/252 survives six models' correction.
MIN_NODES_PER_ARM = 5
MIN_ROUNDS = 3
# Six signs can fall in 64 ways: the fewest at which one way in each tail is below ALPHA.
MIN_SEASONS = 6
# As many shuffles are drawn where all of them would be more.
_SHUFFLES = 9_999
# Sixteen seasons are still enumerated.
_SIGN_PATTERNS = 2**16
# Shuffled numbers held at a time: 8 MB.
_BATCH = 1_000_000
# Deviations are fractions; a smaller spread than this is rounding.
_NO_SPREAD = 1e-12

Verdict = Literal["swarm_better", "isolated_better", "not_shown", "too_few"]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Unit:
    """One node's mean deviation, in score fractions, over `rounds` rounds of a season."""

    node: str
    arm: str
    deviation: float
    rounds: int


@dataclass(frozen=True)
class Missing:
    """What a model lacks for a test: nodes that are not there yet, and at least so many rounds."""

    swarm_nodes: int
    isolated_nodes: int
    rounds: int


@dataclass(frozen=True)
class Claim:
    """What a season says about one model; differences are swarm - isolated in score fractions.

    The counts, `difference` and `interval` are over nodes with at least MIN_ROUNDS rounds. The
    interval is Welch's at 95 % for this model alone; the verdict follows `p_adjusted`, which is
    corrected after Holm over the models in `family`, so the two may disagree at the border.
    `missing` is None when the model was tested.
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


@dataclass(frozen=True)
class SeasonsClaim:
    """What several seasons say; `difference` is the mean over seasons of swarm - isolated."""

    n_seasons: int
    difference: float | None
    interval: Interval | None
    p_value: float | None
    verdict: Verdict
    missing_seasons: int


def compare_arms(units_by_model: Mapping[str, Sequence[Unit]], *, seed: int) -> list[Claim]:
    """Return one claim for each model of a season, in the order given.

    A model is tested when both arms have MIN_NODES_PER_ARM nodes with MIN_ROUNDS rounds each; units
    of other arms are passed over. The test shuffles arm labels and compares differences of means,
    two-sided: all shuffles where they are at most 9,999, else as many drawn with `seed`.
    """
    arms = {model: _split_arms(units) for model, units in units_by_model.items()}
    missing = {model: _count_missing(units) for model, units in units_by_model.items()}
    family = tuple(model for model in arms if missing[model] is None)
    p_values = {model: _shuffle_arms(*arms[model], seed=seed) for model in family}
    levels = adjust_by_holm(list(p_values.values()), hypotheses=len(family))
    adjusted = {model: float(level) for model, level in zip(family, levels, strict=True)}
    claims = []
    for model, (swarm, isolated) in arms.items():
        difference = float(swarm.mean() - isolated.mean()) if len(swarm) and len(isolated) else None
        claims.append(
            Claim(
                model=model,
                n_swarm=len(swarm),
                n_isolated=len(isolated),
                difference=difference,
                interval=welch_interval(swarm, isolated),
                p_value=p_values.get(model),
                p_adjusted=adjusted.get(model),
                family=family,
                verdict=_decide(difference, adjusted.get(model)),
                missing=missing[model],
            )
        )
    return claims


def compare_seasons(differences: Mapping[str, float]) -> SeasonsClaim:
    """Return what the differences of several seasons, swarm - isolated by season, say together.

    The unit is a season. The test flips their signs in all ways, two-sided: exact if without an
    effect a season's difference is as likely as its opposite. Beyond sixteen seasons it draws
    65,536 ways with a fixed seed. The interval is Student's at 95 %.
    """
    values = np.array(list(differences.values()), dtype=np.float64)
    lacking = max(0, MIN_SEASONS - len(values))
    difference = float(values.mean()) if len(values) else None
    p_value = None if lacking else _flip_signs(values)
    return SeasonsClaim(
        n_seasons=len(values),
        difference=difference,
        interval=_student_interval(values),
        p_value=p_value,
        verdict=_decide(difference, p_value),
        missing_seasons=lacking,
    )


def _split_arms(units: Sequence[Unit]) -> tuple[Floats, Floats]:
    """Return the deviations of swarm and isolated nodes with enough rounds."""
    swarm, isolated = (
        np.array(
            [unit.deviation for unit in units if unit.arm == arm and unit.rounds >= MIN_ROUNDS],
            dtype=np.float64,
        )
        for arm in ("swarm", "isolated")
    )
    return swarm, isolated


def _count_missing(units: Sequence[Unit]) -> Missing | None:
    """Return what a model lacks for a test, or None."""
    swarm, isolated = (
        sorted((unit.rounds for unit in units if unit.arm == arm), reverse=True)
        for arm in ("swarm", "isolated")
    )
    # A node that is not there yet has no rounds. The arm is full when its last one has enough.
    rounds = min(
        arm[MIN_NODES_PER_ARM - 1] if len(arm) >= MIN_NODES_PER_ARM else 0
        for arm in (swarm, isolated)
    )
    if rounds >= MIN_ROUNDS:
        return None
    return Missing(
        swarm_nodes=max(0, MIN_NODES_PER_ARM - len(swarm)),
        isolated_nodes=max(0, MIN_NODES_PER_ARM - len(isolated)),
        rounds=MIN_ROUNDS - rounds,
    )


def _decide(difference: float | None, p_value: float | None) -> Verdict:
    if difference is None or p_value is None:
        return "too_few"
    if p_value > ALPHA:
        return "not_shown"
    return "swarm_better" if difference > 0 else "isolated_better"


def _shuffle_arms(swarm: Floats, isolated: Floats, *, seed: int) -> float:
    """Return the randomisation test's two-sided p-value."""
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import permutation_test

    nodes = len(swarm) + len(isolated)
    result = permutation_test(
        (swarm, isolated),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        permutation_type="independent",
        vectorized=True,
        n_resamples=_SHUFFLES,
        batch=max(1, _BATCH // nodes),
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def _flip_signs(values: Floats) -> float:
    """Return the sign-flip test's two-sided p-value."""
    from scipy.stats import permutation_test

    result = permutation_test(
        (values,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=_SIGN_PATTERNS,
        batch=max(1, _BATCH // len(values)),
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def welch_interval(swarm: Floats, isolated: Floats) -> Interval | None:
    """Return Welch's interval (Biometrika 34, 1947); None where an arm shows no spread."""
    from scipy.stats import ttest_ind

    if not (_is_spread(swarm) and _is_spread(isolated)):
        return None
    interval = ttest_ind(swarm, isolated, equal_var=False).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)


def _student_interval(values: Floats) -> Interval | None:
    """Return Student's interval of a mean; None where the values show no spread."""
    from scipy.stats import ttest_1samp

    if not _is_spread(values):
        return None
    interval = ttest_1samp(values, 0).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)


def _is_spread(values: Floats) -> bool:
    return len(values) > 1 and bool(np.ptp(values) > _NO_SPREAD)
