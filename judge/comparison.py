"""Swarm against isolated: what a season shows about its models, whenever one looks; pure.

Within a season the unit is a node. Its number is its mean deviation: its score in a round minus
the mean score of all nodes of its model in that round, averaged over its rounds, so that hard
rounds harm nobody. From it is taken what was known of the node before the coin chose its arm, as
far as that tells nodes apart (`adjust`); what came after, such as the tokens that it generated,
may be an effect of the arm and is left alone. At looks that are planned in advance (`plan_looks`)
the arms are compared with those that the coin might have drawn (`judge.randomisation`).

What that test is valid for: nodes of a swarm feed on each other, so they are no independent
copies, and a randomisation test does not take them for such. Where each node's arm was drawn by
coin it is exact, over all looks together, for Fisher's sharp null hypothesis: no node's score
depends on anybody's arm, its own or another's. Rejecting says that the arms did something to
somebody in this season. Which part of it a node's own arm did, and which its peers, is no sharp
hypothesis and would take other designs (S. Athey, D. Eckles, G. W. Imbens, JASA 113, 2018).

What it is not valid for: arms that people chose, since those who choose differ; nodes that stay or
leave because of their arm; and any other swarm. Whatever befalls one arm alone, an outage of its
network for example, is part of what this arm was in this season. Whether sharing helps swarms takes
several seasons, each of them one unit (`judge.over_seasons`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Literal

import numpy as np
import numpy.typing as npt

from judge.planning import Spread, estimate_spread
from judge.randomisation import Bits, Floats, compute_p_values, measure_gaps, shuffle_arms
from swarm_record.stats import CONFIDENCE, Interval

ALPHA = 0.05
# Five against five can be shuffled in 252 ways; in blocks there are fewer, but still a hundred.
MIN_NODES_PER_ARM = 5
MIN_ROUNDS = 3
# What is kept of ALPHA for models that come later in a season, and again of that.
RESERVED = 0.1
# The arms are compared after these parts of a trial. The same parts of ALPHA are spent by then.
_PARTS = (Fraction(1, 32), Fraction(1, 16), *(Fraction(eighth, 8) for eighth in range(1, 9)))
# Deviations are fractions; a smaller spread than this is rounding.
_NO_SPREAD = 1e-9

Verdict = Literal["swarm_better", "isolated_better", "not_shown", "too_few"]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Trial:
    """The nodes of one model, and what they did until each look.

    `places` [nodes] are the nodes' blocks and places in them, and `blocks` say which arm the coin
    wrote on each place, true for swarm. `deviations` [looks, nodes] are mean deviations in score
    fractions, NaN without a round, and `rounds` [looks, nodes] their numbers of rounds. `known`
    [nodes, facts] was known before the arms were drawn. `noise` [nodes] is the variance of a
    node's deviation from round to round.
    """

    places: Sequence[tuple[int, int]]
    blocks: Mapping[int, Sequence[bool]]
    deviations: Floats
    rounds: Ints
    known: Floats
    noise: Floats

    @property
    def swarm(self) -> Bits:
        """Which nodes [nodes] are in the swarm."""
        return np.array([self.blocks[block][place] for block, place in self.places], dtype=bool)


@dataclass(frozen=True)
class Missing:
    """What a model lacks for a test: nodes that are not there yet, and at least so many rounds."""

    swarm_nodes: int
    isolated_nodes: int
    rounds: int


@dataclass(frozen=True)
class Claim:
    """What a season says about one model; differences are swarm - isolated in score fractions.

    All of it is as of the last look, `look` rounds into the season. The counts, `difference` and
    `interval` are over nodes with at least MIN_ROUNDS rounds. `difference` is adjusted, and
    `unadjusted` is not. The interval is Welch's at 95 % for this model and this look alone. The
    p-values hold at every look; `p_adjusted` is corrected after Holm over the models in `family`,
    and the verdict follows it. `missing` is None when the model was tested.
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
    spread: Spread | None = None


@dataclass(frozen=True)
class _Tested:
    """A model's test: the look at which it was first tested, its p-value, and whom it favours."""

    first: int
    p_value: float
    favours_swarm: bool


def plan_looks(trial_rounds: int) -> list[int]:
    """Return after how many rounds the arms of a season are compared: ten times at most."""
    planned = {ceil(part * trial_rounds) for part in _PARTS}
    return sorted(look for look in planned if look >= MIN_ROUNDS)


def share_level(*, models: int) -> float:
    """Return the level at which each of so many models is tested, if they begin together."""
    return ALPHA * (1 - RESERVED) / models


def compare_arms(
    trials: Mapping[str, Trial],
    *,
    looks: Sequence[int],
    trial_rounds: int,
    seed: int,
) -> list[Claim]:
    """Return one claim for each model of a season, in the order given; `seed` draws the arms.

    `looks` are those of `plan_looks` that have been reached; before the first, the number of
    rounds, at which nothing is tested. A model is tested from the first look on at which as many
    nodes as two arms need have MIN_ROUNDS rounds each.
    """
    wait = max(0, plan_looks(trial_rounds)[0] - looks[-1])
    tested = {}
    for model, trial in trials.items():
        found = None if wait else _test(trial, spent=spent_at(looks, trial_rounds), seed=seed)
        if found is not None:
            tested[model] = found
    adjusted = _adjust_by_holm(tested)
    claims = []
    for model, trial in trials.items():
        missing = _count_missing(trial, wait=wait)
        result = None if missing else tested.get(model)
        claims.append(_describe(model, trial, result, adjusted, missing=missing, look=looks[-1]))
    return claims


def spent_at(looks: Sequence[int], trial_rounds: int) -> Floats:
    """Return the part of the budget [looks] that is spent: as much as is over of the trial."""
    return np.minimum(1, np.array(looks, dtype=np.float64) / trial_rounds)


def _test(trial: Trial, *, spent: Floats, seed: int) -> _Tested | None:
    """Return the result of a model's test; None where it has had too few nodes at every look.

    Whether a look is made does not depend on the arms.
    """
    values = np.stack([_adjusted_values(trial, look) for look in range(len(spent))])
    ready = np.flatnonzero((~np.isnan(values)).sum(axis=1) >= 2 * MIN_NODES_PER_ARM)
    if not len(ready):
        return None
    labels = shuffle_arms(trial.places, trial.blocks, seed=seed)
    gaps = measure_gaps(labels, values[ready], minimum=MIN_NODES_PER_ARM)
    p_values = compute_p_values(gaps, spent=spent[ready])
    # The look that the p-value is from, and the arm that was ahead at it.
    decisive = values[ready[int(np.argmin(p_values))]]
    swarm, isolated = _split(decisive, trial.swarm)
    ahead = len(swarm) > 0 and len(isolated) > 0 and swarm.mean() > isolated.mean()
    return _Tested(first=int(ready[0]), p_value=float(p_values[-1]), favours_swarm=bool(ahead))


def _counted(trial: Trial, look: int) -> Floats:
    """Return the mean deviations [nodes] that count at a look, NaN for those that do not."""
    return np.where(trial.rounds[look] >= MIN_ROUNDS, trial.deviations[look], np.nan)


def _adjusted_values(trial: Trial, look: int) -> Floats:
    return adjust(_counted(trial, look), trial.known)


def adjust(values: Floats, known: Floats) -> Floats:
    """Return what is left of `values` [nodes] beside what `known` [nodes, facts] predicts of them.

    The prediction is a linear regression without regard to arms, so whatever the arms did stays
    in, and a test that shuffles arms stays exact (P. R. Rosenbaum, Statistical Science 17, 2002).
    """
    there = ~np.isnan(values)
    facts = _vary(known[there])
    if facts.shape[1] == 0:
        return values
    left = np.full_like(values, np.nan)
    left[there] = _leave(values[there], facts)
    return left


def _vary(known: Floats) -> Floats:
    """Return the facts that tell nodes apart, in units of their spread about their mean."""
    if not len(known):
        return known[:, :0]
    spread = known.std(axis=0)
    varying = spread > _NO_SPREAD
    facts: Floats = (known[:, varying] - known[:, varying].mean(axis=0)) / spread[varying]
    return facts


def _leave(values: Floats, facts: Floats) -> Floats:
    """Return the residuals of a regression on facts with mean 0."""
    slopes = np.linalg.lstsq(facts, values - values.mean(), rcond=None)[0]
    left: Floats = values - facts @ slopes
    return left


def _adjust_by_holm(tested: Mapping[str, _Tested]) -> dict[str, float]:
    """Return the p-values adjusted over all models of the season, also those that came later.

    Models that could first be tested at one look share a part of the budget, and a tenth is kept
    for later ones. Holm's procedure takes such weights (S. Holm, Scandinavian Journal of
    Statistics 6, 1979).
    """
    weights: dict[str, float] = {}
    kept = 1.0
    for first in sorted({each.first for each in tested.values()}):
        fellows = [model for model, each in tested.items() if each.first == first]
        weights |= dict.fromkeys(fellows, kept * (1 - RESERVED) / len(fellows))
        kept *= RESERVED
    adjusted: dict[str, float] = {}
    least, waiting = 0.0, sum(weights.values()) + kept
    for model in sorted(tested, key=lambda each: tested[each].p_value / weights[each]):
        least = max(least, min(1.0, tested[model].p_value * waiting / weights[model]))
        adjusted[model] = least
        waiting -= weights[model]
    return adjusted


def _describe(
    model: str,
    trial: Trial,
    tested: _Tested | None,
    adjusted: Mapping[str, float],
    *,
    missing: Missing | None,
    look: int,
) -> Claim:
    """Say what is known of a model at the last look."""
    counted = _counted(trial, -1)
    swarm, isolated = _split(counted, trial.swarm)
    unadjusted = float(swarm.mean() - isolated.mean()) if len(swarm) and len(isolated) else None
    difference, interval = _estimate(counted, trial)
    p_adjusted = adjusted[model] if tested else None
    return Claim(
        model=model,
        n_swarm=len(swarm),
        n_isolated=len(isolated),
        difference=unadjusted if difference is None else difference,
        interval=interval,
        p_value=tested.p_value if tested else None,
        p_adjusted=p_adjusted,
        family=tuple(adjusted),
        verdict=_decide(difference, tested, p_adjusted),
        missing=missing,
        unadjusted=unadjusted,
        look=look,
        spread=None if missing else _spread(counted, trial),
    )


def _estimate(counted: Floats, trial: Trial) -> tuple[float | None, Interval | None]:
    """Return the adjusted difference with its interval; None where it cannot be told.

    Taking out what was known also takes out the part of the arms that happens to go along with
    it, so what is left is scaled back: the result is that of a regression on arm and facts.
    """
    there = ~np.isnan(counted)
    arms, facts = trial.swarm[there], _vary(trial.known[there])
    if arms.all() or not arms.any():
        return None, None
    left = _leave(arms.astype(np.float64), facts)
    alone = float(left.var() / arms.var())
    if alone < _NO_SPREAD:
        return None, None
    swarm, isolated = _split(adjust(counted, trial.known), trial.swarm)
    difference = float(swarm.mean() - isolated.mean()) / alone
    interval = welch_interval(swarm, isolated)
    if interval is None:
        return difference, None
    half = (interval[1] - interval[0]) / 2 / alone
    return difference, (difference - half, difference + half)


def _spread(counted: Floats, trial: Trial) -> Spread | None:
    there = ~np.isnan(counted)
    return estimate_spread(
        _split(adjust(counted, trial.known), trial.swarm),
        rounds=trial.rounds[-1][there],
        noise=trial.noise[there],
    )


def _split(values: Floats, swarm: Bits) -> tuple[Floats, Floats]:
    """Return the values of swarm and isolated nodes that have one."""
    there = ~np.isnan(values)
    return values[there & swarm], values[there & ~swarm]


def _count_missing(trial: Trial, *, wait: int) -> Missing | None:
    """Return what a model lacks for a test at the last look, or None; `wait` rounds are to come."""
    arms = [
        np.sort(trial.rounds[-1][(trial.rounds[-1] > 0) & label])[::-1]
        for label in (trial.swarm, ~trial.swarm)
    ]
    # A node that is not there yet has no rounds. The arm is full when its last one has enough.
    rounds = min(
        int(arm[MIN_NODES_PER_ARM - 1]) if len(arm) >= MIN_NODES_PER_ARM else 0 for arm in arms
    )
    if rounds >= MIN_ROUNDS and not wait:
        return None
    swarm, isolated = (max(0, MIN_NODES_PER_ARM - len(arm)) for arm in arms)
    lacking = max(wait, MIN_ROUNDS - rounds)
    return Missing(swarm_nodes=swarm, isolated_nodes=isolated, rounds=lacking)


def _decide(difference: float | None, tested: _Tested | None, p_value: float | None) -> Verdict:
    """Name the better arm where the test found one, and it is ahead still."""
    if difference is None or tested is None or p_value is None:
        return "too_few"
    if p_value > ALPHA or tested.favours_swarm != (difference > 0):
        return "not_shown"
    return "swarm_better" if difference > 0 else "isolated_better"


def welch_interval(swarm: Floats, isolated: Floats) -> Interval | None:
    """Return Welch's interval (Biometrika 34, 1947); None where an arm shows no spread."""
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import ttest_ind

    if not all(len(arm) > 1 and np.ptp(arm) > _NO_SPREAD for arm in (swarm, isolated)):
        return None
    interval = ttest_ind(swarm, isolated, equal_var=False).confidence_interval(CONFIDENCE)
    return float(interval.low), float(interval.high)
