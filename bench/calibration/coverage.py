"""How often the judge's intervals contain the true score, for `make bench-calibration`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table
from scipy.stats import binom

from bench.report import Target
from swarm_record.stats import effective_n, macro_intervals

WINDOWS = 4_000
MIXES = 400
MIN_QUESTIONS = 50
# The intended coverage, 0.95, minus a margin for chance in WINDOWS draws.
AIMED_AT = 0.94

TARGETS = [
    Target("coverage_worst_n50", "lowest coverage of an interval, n >= 50", "", at_least=AIMED_AT)
]

Floats = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Coverage:
    """The `lowest` coverage of any mix, and the share of mixes with a coverage below AIMED_AT."""

    lowest: float
    below: float


def measure(figures: dict[str, float]) -> Table:
    """Measure everything, add the figures to `figures`, and return the table.

    The target applies to intervals over datasets with equally many questions. The leaderboard
    calls other intervals approximate.
    """
    one, even, uneven = cover_one_dataset(), cover_mixes(even=True), cover_mixes(even=False)
    table = Table("windows", "lowest", f"below {AIMED_AT:g}", title="Intervals that hold the score")
    table.add_row("one dataset", f"{one:.3f}", "0%")
    table.add_row(f"{MIXES} even mixes", f"{even.lowest:.3f}", f"{even.below:.1%}")
    table.add_row(f"{MIXES} uneven mixes", f"{uneven.lowest:.3f}", f"{uneven.below:.1%}")
    figures |= {
        "coverage_worst_n50": min(one, even.lowest),
        "coverage, uneven mixes, lowest": uneven.lowest,
        "coverage, uneven mixes, share below aim": uneven.below,
    }
    return table


def cover_one_dataset() -> float:
    """Return the lowest coverage of the interval for one dataset with 50, 100 or 500 questions.

    It is computed exactly for each of 199 true scores from 0.005 to 0.995.
    """
    lowest = 1.0
    for n in (50, 100, 500):
        solved = np.arange(n + 1)
        lows, highs = macro_intervals(solved / n, np.full(n + 1, n))
        for share in np.linspace(0.005, 0.995, 199):
            covered = (lows <= share) & (share <= highs)
            lowest = min(lowest, float(binom.pmf(solved, n, share)[covered].sum()))
    return lowest


def cover_mixes(*, even: bool) -> Coverage:
    """Return the coverage over MIXES random mixes of two to eight datasets.

    If `even`, all datasets of a mix have equally many questions. Otherwise one dataset may have up
    to 512 times as many as another.
    """
    rng = np.random.default_rng(1)
    mixes = islice(_draw_mixes(rng, even=even), MIXES)
    found = np.array([cover_mix(rng, sizes, shares) for sizes, shares in mixes])
    return Coverage(float(found.min()), float(np.mean(found < AIMED_AT)))


def cover_mix(rng: np.random.Generator, sizes: Sequence[int], shares: Floats) -> float:
    """Simulate WINDOWS windows; return the fraction whose interval contains the true score.

    For each dataset, `sizes` has the number of questions, and `shares` the probability that a
    question is solved. The true score is the mean of `shares`.
    """
    solved = rng.binomial(sizes, shares, (WINDOWS, len(sizes)))
    effective = [
        effective_n({str(at): (count, sizes[at]) for at, count in enumerate(row)})
        for row in solved.tolist()
    ]
    lows, highs = macro_intervals((solved / sizes).mean(axis=1), effective)
    true = shares.mean()
    return float(np.mean((lows <= true) & (true <= highs)))


def _draw_mixes(
    rng: np.random.Generator, *, even: bool
) -> Iterator[tuple[tuple[int, ...], Floats]]:
    """Yield random `sizes` and `shares` for `cover_mix`, of two to eight datasets.

    The probabilities in `shares` are mostly near 0 or 1 in half of the mixes, and mostly small in
    the others. Each mix has at least MIN_QUESTIONS questions.
    """
    while True:
        datasets = int(rng.integers(2, 9))
        sizes = rng.choice(2 ** np.arange(10), 1 if even else datasets)
        sizes = np.broadcast_to(sizes, datasets)
        a, b = (0.3, 0.3) if rng.random() < 0.5 else (0.5, 4.0)
        shares = rng.beta(a, b, datasets)
        if sizes.sum() >= MIN_QUESTIONS:
            yield tuple(map(int, sizes)), shares
