"""How often the search for copied answers accuses honest nodes, for `make bench-calibration`."""

from collections.abc import Iterator

import numpy as np
from rich.table import Table

from bench.report import Target
from judge.statistics.copying import ALPHA, WrongAnswer, find_copies

NODES, MODELS, QUESTIONS = 1_000, 10, 32
# As many as one search looks at together (judge.services.inspection).
ROUNDS = 4
SEARCHES = 100
SEARCHES_A_YEAR = 365 * 86_400 // 300
# Shares of wrong answers that nodes of a model give alike: hardly trained apart, and far.
ALIKE = (0.2, 0.5, 0.8)
# Wrong answers are common as Zipf's law has it: the first of 50 is given by some 22 %.
_TEXTS, _WRONG = 50, 0.7

TARGETS = [
    Target(
        "copying_alarms_a_year",
        "flags of 1,000 honest nodes in a year, at most by the smallest p",
        "",
        at_most=1.0,
    )
]


def measure(figures: dict[str, float]) -> Table:
    """Measure everything, note the figures, and return the table.

    A search accuses somebody if its smallest adjusted p is ALPHA or less. So rare an event is not
    seen in SEARCHES; what is shown is whether small p-values are as rare as they claim to be, which
    is where the bound for a year comes from.
    """
    table = Table(
        "alike in a model", "searches", "p ≤ .1", "p ≤ .01", "smallest p", title="Copied answers"
    )
    smallest = []
    for alike in ALIKE:
        found = np.array([smallest_p(alike, seed=seed) for seed in range(SEARCHES)])
        smallest.append(found)
        shares = [f"{np.mean(found <= level):.1%}" for level in (0.1, 0.01)]
        table.add_row(f"{alike:.0%}", str(SEARCHES), *shares, f"{found.min():.2g}")
    everything = np.concatenate(smallest)
    # How much more frequent than they claim small p-values are, at the worst level seen.
    ranks = np.arange(1, len(everything) + 1) / len(everything)
    excess = float(np.max(ranks / np.maximum(np.sort(everything), 1 / len(everything))))
    figures["copying_alarms_a_year"] = max(1.0, excess) * ALPHA * SEARCHES_A_YEAR
    figures["copying, smallest adjusted p"] = float(everything.min())
    return table


def smallest_p(alike: float, *, seed: int) -> float:
    """Return the smallest adjusted p-value in a search among honest nodes; 1 without a pair."""
    findings = find_copies(_draw_wrong(alike, seed=seed), alpha=1.0)
    return min((finding.p_adjusted for finding in findings), default=1.0)


def _draw_wrong(alike: float, *, seed: int) -> Iterator[WrongAnswer]:
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, _TEXTS + 1)
    weights /= weights.sum()
    count = ROUNDS * QUESTIONS
    models = np.arange(NODES) % MODELS
    own = rng.choice(_TEXTS, size=(MODELS, count), p=weights)
    drawn = rng.choice(_TEXTS, size=(NODES, count), p=weights)
    answers = np.where(rng.random(drawn.shape) < alike, own[models], drawn)
    for node, question in np.argwhere(rng.random(drawn.shape) < _WRONG):
        text = f"{question}: {answers[node, question]}"
        yield WrongAnswer(int(question), int(node), f"model-{models[node]}", text)
