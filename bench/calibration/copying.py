"""How often the search for copied answers accuses honest nodes, for `make bench-calibration`."""

from collections.abc import Iterator

import numpy as np
from rich.table import Table

from bench.report import Target
from judge.statistics.copying import ALPHA, WrongAnswer, find_copies

NODES, MODELS, QUESTIONS = 1_000, 10, 32
# Number of rounds that one search covers (judge.services.inspection).
ROUNDS = 4
SEARCHES = 100
SEARCHES_A_YEAR = 365 * 86_400 // 300
# Shares of the wrong answers that all nodes of a model have in common. Nodes that have trained
# little have most in common.
ALIKE = (0.2, 0.5, 0.8)
# The frequencies of 50 wrong answers follow Zipf's law: the first has about 22 %. A node answers
# the share _WRONG of the questions wrongly.
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
    """Measure everything, add the figures to `figures`, and return the table.

    A search accuses a node if the smallest adjusted p-value is at most ALPHA. That is too rare to
    count, so a bound is computed from larger p-values. For each p, the smallest p-value
    should be at most p in at most the fraction p of the searches. The bound per year is ALPHA times
    the searches per year, times the largest ratio of the measured fraction to p (at least 1).
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
    # By which factor p-values up to a level are more frequent than the level, at the worst level.
    ranks = np.arange(1, len(everything) + 1) / len(everything)
    excess = float(np.max(ranks / np.maximum(np.sort(everything), 1 / len(everything))))
    figures["copying_alarms_a_year"] = max(1.0, excess) * ALPHA * SEARCHES_A_YEAR
    figures["copying, smallest adjusted p"] = float(everything.min())
    return table


def smallest_p(alike: float, *, seed: int) -> float:
    """Return the smallest adjusted p-value when honest nodes are searched for copied answers.

    Returns 1 if the search tests no pair of nodes. `alike` is the probability that a node's wrong
    answer is the one that all nodes with its model have in common.
    """
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
