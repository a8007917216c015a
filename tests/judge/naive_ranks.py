"""A slow computation of ranks from their definition, pair by pair and question by question."""

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt

from swarm_record.ranking import ResultMatrix

Floats = npt.NDArray[np.float64]

ALPHA = 0.05
EFFECTS = (0.05, 0.025, 0.2, 0.6)
STEADY_BET = 1.5
MOST_PER_QUESTION = 0.5
SHARES = (0.7, 0.1, 0.08, 0.05, 0.07)


def log_cosh(x: float) -> float:
    return abs(x) + math.log1p(math.exp(-2 * abs(x))) - math.log(2)


def weigh_pair(matrix: ResultMatrix, one: int, other: int) -> float:
    """Return the log evidence of one pair, computed question by question."""
    unit = float(matrix.weights.min())
    gains, prices = [0.0] * len(SHARES), [0.0] * len(SHARES)
    all_differ = float(np.sum(matrix.weights[matrix.rounds == 0] ** 2))
    squares, shared, bets = 0.125 * all_differ, 0.5, [0.0] * len(SHARES)
    starts = {0, *(2**i for i in range(20))}
    before = -1
    for column, number in enumerate(matrix.rounds):
        if number != before and number in starts:
            variance = max(squares / shared, 0.04 * all_differ)
            most = MOST_PER_QUESTION / max(matrix.weights[: matrix.questions])
            bets = [min(most, bet) for bet in (*(e / variance for e in EFFECTS), STEADY_BET)]
        before = number
        difference = float(matrix.values[one, column]) - float(matrix.values[other, column])
        if math.isnan(difference):
            continue
        for i, bet in enumerate(bets):
            gains[i] += bet * difference
            if column < matrix.questions:
                prices[i] += (difference / unit) ** 2 * log_cosh(bet * unit)
            else:
                prices[i] += (bet * difference) ** 2 / 2
        squares += difference**2
        shared += float(matrix.weights[column])
    logs = [
        math.log(share) + log_cosh(gain) - price
        for share, gain, price in zip(SHARES, gains, prices, strict=True)
    ]
    return max(logs) + math.log(sum(math.exp(each - max(logs)) for each in logs))


def rank_pair_by_pair(matrix: ResultMatrix, scores: Floats) -> list[tuple[int, int]]:
    """Return what `rank_nodes` must return, with Holm's procedure as published."""
    pairs = list(combinations(range(len(scores)), 2))
    sums = [np.nansum(matrix.values[i] - matrix.values[j]) for i, j in pairs]
    evidence = [weigh_pair(matrix, i, j) for i, j in pairs]
    better, worse = np.zeros(len(scores), int), np.zeros(len(scores), int)
    for rank, at in enumerate(np.argsort(evidence)[::-1]):
        if evidence[at] < math.log((len(pairs) - rank) / ALPHA):
            break
        up, down = pairs[at] if sums[at] > 0 else pairs[at][::-1]
        if scores[up] > scores[down]:
            better[down] += 1
            worse[up] += 1
    return list(zip(1 + better, len(scores) - worse, strict=True))
