"""`make bench-calibration`: check the judge's claims on simulated seasons.

The judge must not rank one of two equal nodes above the other, however often its test is made, and
should need few questions to distinguish different nodes. All random seeds are fixed, so the same
code prints the same figures.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.table import Table
from scipy.stats import binom, norm

from bench.calibration import copying, coverage, sharing
from bench.report import Target, conclude
from swarm_record.ranking import Scale, Stretch, weigh
from swarm_record.stream import QUESTIONS

ALPHA = 0.05
ROUNDS = 200
EVEN, UNEVEN = (8, 8, 8, 8), (28, 1, 1, 1, 1)
# Number of simulated seasons by number of nodes, chosen so that each case takes at most a minute.
SEASONS = {2: 2000, 10: 400, 50: 100}
COMMON = 0.3
POWER = 0.8

TARGETS = [
    Target(
        "false_claim_ever_200_rounds_worst",
        "seasons of identical nodes that ever show a winner",
        "",
        at_most=ALPHA,
    ),
    Target(
        "false_claim_uneven_mix_worst", "the same in uneven mixes, unlike nodes", "", at_most=ALPHA
    ),
    Target(
        "questions_over_optimum_5_points",
        "questions for a lead of 5 points : best for one look, even mix",
        "",
        at_most=1.6,
    ),
]

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Looks:
    """The comparison of all pairs of nodes after a round; the arrays are (seasons, pairs).

    `rounds` is the number of rounds so far. `ahead` is the sum of the first node's score minus the
    second node's score over the rounds. `squares` is the sum of the squared, weighted differences
    of the nodes on single questions. As in the judge's test, `squares` covers only the first
    rounds, which together have at most QUESTIONS questions. `evidence` is the log evidence that the
    two nodes differ. `won` counts the questions that only the first node solved, `lost` those that
    only the second solved.
    """

    rounds: int
    ahead: Floats
    squares: Floats
    evidence: Floats
    won: Floats
    lost: Floats


def simulate(
    shares: Floats,
    *,
    mix: Sequence[int],
    rounds: int,
    seasons: int,
    missing: float = 0.0,
    left_out: float = 0.0,
    seed: int,
) -> Iterator[Looks]:
    """Simulate `seasons` seasons at once, and yield the comparison of all pairs after each round.

    `shares` (nodes, datasets) are the probabilities that a node solves a question, and `mix` is the
    number of questions per dataset. Some questions are harder than others for all nodes: with the
    probability COMMON, all nodes use the same random number for a question. Each node misses a
    round with the probability `missing`. The first node also misses its worst rounds: a fraction
    `left_out` of all rounds, those in which it would score lowest.
    """
    rng = np.random.default_rng(seed)
    weights = np.concatenate([np.full(n, 1 / (len(mix) * n)) for n in mix])
    chances = np.repeat(shares, mix, axis=1)
    scale = Scale(
        smallest=float(weights.min()),
        largest=float(weights.max()),
        all_differ=float((weights**2).sum()),
    )
    one, other = np.triu_indices(len(shares), 1)
    stretches: list[Stretch] = []
    won = lost = np.zeros((seasons, len(one)))
    for number in range(rounds):
        if number & (number - 1) == 0:
            stretches.append(
                Stretch(*(np.zeros((seasons, len(one)), np.float32) for _ in range(4)))
            )
        drawn = rng.random((seasons, *chances.shape))
        is_common = rng.random((seasons, 1, len(weights))) < COMMON
        solved = np.where(is_common, drawn[:, :1], drawn) < chances
        there = rng.random((seasons, len(shares))) >= missing
        if left_out:
            own = solved[:, 0] @ weights + 1e-6 * rng.random(seasons)
            there[:, 0] &= own >= np.quantile(own, left_out)
        both = (there[:, one] & there[:, other])[..., None]
        gaps = (solved[:, one].astype(np.float32) - solved[:, other]) * both
        won, lost = won + (gaps > 0).sum(axis=2), lost + (gaps < 0).sum(axis=2)
        stretches[-1] = _add_round(
            stretches[-1], gaps, weights, both=both[..., 0], single=number < QUESTIONS // sum(mix)
        )
        yield Looks(
            rounds=number + 1,
            ahead=sum((each.differences for each in stretches), np.zeros(())),
            squares=sum((each.by_question for each in stretches), np.zeros(())),
            evidence=weigh(stretches, scale),
            won=won,
            lost=lost,
        )


def _add_round(
    stretch: Stretch, gaps: Floats, weights: Floats, *, both: npt.NDArray[np.bool_], single: bool
) -> Stretch:
    """Return `stretch`, the sums over consecutive rounds, with one more round added.

    `gaps` (seasons, pairs, questions) is 1 where only the first node solved the question, -1 where
    only the second did, and otherwise 0. `both` (seasons, pairs) is true where both nodes of a pair
    took part. If `single`, the squared differences on the round's questions are added to the field
    `by_question`, otherwise the squared difference of the nodes' scores to the field `by_round`.
    """
    differences = gaps @ weights
    return Stretch(
        differences=stretch.differences + differences,
        by_question=stretch.by_question + (gaps**2 @ weights**2 if single else 0),
        by_round=stretch.by_round + (0 if single else differences**2),
        shared=stretch.shared + both,
    )


def measure_false_claims(
    shares: Floats, *, mix: Sequence[int], missing: float = 0.0
) -> tuple[float, float]:
    """Return the fractions of seasons in which two tests ever find that equal nodes differ.

    The first fraction is for McNemar's exact test, made after each round although it is valid for
    one look only. The second is for the judge's test. `shares`, `mix` and `missing` are as in
    `simulate`.
    """
    nodes = len(shares)
    pairs, seasons = nodes * (nodes - 1) // 2, SEASONS[nodes]
    usual, ours = np.zeros(seasons, bool), np.zeros(seasons, bool)
    for looks in simulate(
        shares, mix=mix, rounds=ROUNDS, seasons=seasons, missing=missing, seed=nodes
    ):
        ours |= (looks.evidence >= np.log(pairs / ALPHA)).any(axis=1)
        tail = 2 * binom.cdf(np.minimum(looks.won, looks.lost), looks.won + looks.lost, 0.5)
        usual |= (tail <= ALPHA / pairs).any(axis=1)
    return float(usual.mean()), float(ours.mean())


def measure_choosing(left_out: float) -> float:
    """Return the fraction of seasons in which a node is ever ranked above an equal one.

    The node leaves out the share `left_out` of its rounds, those in which it would score lowest.
    """
    ever = np.zeros(SEASONS[2], bool)
    shares = np.full((2, len(EVEN)), 0.3)
    for looks in simulate(
        shares, mix=EVEN, rounds=ROUNDS, seasons=SEASONS[2], left_out=left_out, seed=3
    ):
        ever |= ((looks.evidence >= np.log(1 / ALPHA)) & (looks.ahead > 0))[:, 0]
    return float(ever.mean())


def measure_power(
    share: float, lead: float, *, pairs: int, mix: Sequence[int] = EVEN
) -> tuple[int, int]:
    """Return how many questions two tests need to rank the better node first in 80 % of seasons.

    One node solves the fraction `share` of the questions, the other `share + lead`. The first
    figure is for a z-test with the true variance, made once at a time planned in advance. The
    second is for the judge's test, made after each round. Both tests use the level ALPHA / `pairs`,
    with which Holm's procedure starts when it compares `pairs` pairs. Raises RuntimeError if 600
    rounds are too few.
    """
    shares = np.array([[share + lead], [share]]).repeat(len(mix), axis=1)
    ever = np.zeros(600, bool)
    errors = norm.ppf(1 - ALPHA / pairs / 2) + norm.ppf(POWER)
    for looks in simulate(shares, mix=mix, rounds=600, seasons=600, seed=1):
        ever |= ((looks.evidence >= np.log(pairs / ALPHA)) & (looks.ahead > 0))[:, 0]
        if ever.mean() >= POWER:
            # Subtract the squares of the means, `lead` times the weight, of a round's questions.
            even_out = lead**2 * sum(1 / n for n in mix) / len(mix) ** 2
            singles = min(looks.rounds, QUESTIONS // sum(mix))
            variance = float(looks.squares.mean()) / singles - even_out
            planned = ceil(variance * (errors / lead) ** 2)
            return planned * sum(mix), looks.rounds * sum(mix)
    raise RuntimeError(f"600 rounds are too few for a lead of {lead} at {share}.")


def main() -> int:
    """Measure everything, print it and write the results; return 1 if a target is missed."""
    claims = Table(
        "seasons", "mix", "McNemar", "ours", title="Seasons that ever show a false winner"
    )
    powers = Table("share", "lead", "mix", "pairs", "one look", "ours", "ratio", title="Questions")
    choosing = Table("left out", "ranked above its equal", title="A node that chooses its rounds")
    false: dict[str, float] = {}
    uneven: dict[str, float] = {}
    ratios: dict[tuple[str, ...], float] = {}
    chosen: dict[float, float] = {}
    for words, shares, mix, missing in _equal_nodes():
        usual, ours = measure_false_claims(shares, mix=mix, missing=missing)
        claims.add_row(words, _describe_mix(mix), f"{usual:.1%}", f"{ours:.1%}")
        (false if mix == EVEN else uneven)[f"{words}; {_describe_mix(mix)}"] = ours
    for share, lead, pairs, mix in _leads():
        single, many = measure_power(share, lead, pairs=pairs, mix=mix)
        case = (f"{share:g}", f"{lead:g}", _describe_mix(mix), str(pairs))
        powers.add_row(*case, f"{single:,}", f"{many:,}", f"{many / single:.2f}")
        ratios[case] = many / single
    for share in (0.5, 0.25, 0.1, 0.05):
        chosen[share] = measure_choosing(share)
        choosing.add_row(f"{share:.0%} of the rounds", f"{chosen[share]:.1%}")
    others: dict[str, float] = {}
    Console().print(
        *(claims, powers, choosing, coverage.measure(others)),
        copying.measure(others),
        *sharing.measure(others),
    )
    figures = {
        "false_claim_ever_200_rounds_worst": max(*false.values(), *uneven.values()),
        "false_claim_uneven_mix_worst": max(uneven.values()),
        "questions_over_optimum_5_points": max(
            ratio for case, ratio in ratios.items() if case[1:3] == ("0.05", _describe_mix(EVEN))
        ),
        **{f"false claims, {words}": value for words, value in (false | uneven).items()},
        **{f"questions, {' '.join(case)}": ratio for case, ratio in ratios.items()},
        **{f"ranked above its equal, {share:g} left out": part for share, part in chosen.items()},
        **others,
    }
    targets = [
        *(*TARGETS, *coverage.TARGETS),
        *(*copying.TARGETS, *sharing.TARGETS),
    ]
    return conclude("calibration", figures, targets)


def _equal_nodes() -> Iterator[tuple[str, Floats, tuple[int, ...], float]]:
    """Yield cases of nodes with equal expected scores.

    Each case is a label, the `shares` and `mix` for `simulate`, and the share of missed rounds.
    """
    for mix in (EVEN, UNEVEN):
        for nodes in SEASONS:
            for share in (0.02, 0.3, 0.6):
                yield f"{nodes} nodes, {share:g}", np.full((nodes, len(mix)), share), mix, 0.0
    yield "10 nodes, 0.3, 30% of rounds missed", np.full((10, len(EVEN)), 0.3), EVEN, 0.3
    # One node is better at the dataset with many questions, the other equally at that with few.
    yield "2 unlike nodes, 0.3", np.array([[0.4, 0.2], [0.3, 0.3]]), (27, 5), 0.0
    rare = np.array([[0.06, 0], [0, 0.06]])
    for often, seldom in ((31, 1), (28, 4), (24, 8)):
        yield "2 unlike nodes, 0.03", rare, (often, seldom), 0.0
    yield "2 unlike nodes, 0.02", np.array([[0.1, 0, 0, 0, 0], [0, *[0.025] * 4]]), UNEVEN, 0.0
    yield "2 unlike nodes, 0.985", np.array([[0.97, 1], [1, 0.97]]), (27, 5), 0.0


def _leads() -> list[tuple[float, float, int, tuple[int, ...]]]:
    five = [(share, 0.05, pairs, EVEN) for pairs in (1, 45) for share in (0.02, 0.3, 0.6)]
    others = [(0.3, lead, 1, EVEN) for lead in (0.2, 0.1, 0.03)]
    return [*five, (0.3, 0.05, 1, (16, 4, 4, 4, 4)), *others]


def _describe_mix(mix: Sequence[int]) -> str:
    return ":".join(map(str, mix))


if __name__ == "__main__":
    sys.exit(main())
