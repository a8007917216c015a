"""Ranks of nodes that took part in the same rounds, valid at any number of looks; no I/O.

Two nodes are compared by the difference of their macro scores, as the leaderboard shows them, over
the questions that count for both. A leaderboard is read after every round of a season, and a test
for a single look would eventually find differences between equal nodes. So the evidence here is a
test martingale: for equal nodes, the probability that it ever reaches 1 / alpha is at most alpha
(J. Ville, 1939; A. Ramdas et al., Statistical Science 38(4), 2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# The differences of macro scores that the bets target; `_SHARES` has each one's share of the stake.
# Most is on five points. The larger effects detect large differences within few rounds, and the
# smallest one makes it possible to detect small differences.
EFFECTS = np.array([0.05, 0.025, 0.2, 0.6], dtype=np.float32)
# The last share is for a constant bet. A long time without differences cannot make it too large: it
# gains in each round in which its node is ahead.
STEADY_BET = 1.5
_SHARES = np.array([0.7, 0.1, 0.08, 0.05, 0.07], dtype=np.float32)
# Bets are recomputed after 1, 2, 4, 8, ... rounds from the variance of the rounds so far. The prior
# is half a round in which a quarter of the answers differ; the assumed share of differing answers
# never falls below the last of these values.
_PRIOR_ROUNDS, _PRIOR_DIFFERING, _MIN_DIFFERING = 0.5, 0.25, 0.04
# The most that a bet gains on a single question. In an uneven mix, if one node is better at a
# rarely asked dataset, the other node leads steadily until such a question comes; a larger bet on
# that lead would win too often before it comes.
_MAX_PER_QUESTION = 0.5
# Pairs closer than this many standard errors are skipped: they could not be significant.
_MIN_ERRORS = 2.0
# Nodes on each side of a tile of pairs, so that its arrays fit the processor cache.
_TILE = 512
# Sums of squares below this are rounding errors.
_ROUNDING = 1e-6
_LOG_2 = np.float32(np.log(2))

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Reals = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
# Rows, columns, and the log evidence of their pairs, positive if the row's node is ahead.
Tile = tuple[slice, slice, Singles]


@dataclass(frozen=True)
class ResultMatrix:
    """The nodes' results in a season, with a row per node and a column per question or round.

    The first `questions` columns are single questions. Each further column is a whole later round.
    `values` [nodes, columns] has what a column adds to the node's macro score in a round: a
    question adds its weight if the node solved it and otherwise 0, a round adds the node's score.
    It is NaN where the column does not count for the node. `weights` [columns] has the most that a
    column can add: 1 / (datasets · questions of its dataset) for a question, 1 for a round.
    `rounds` [columns] has the number of each column's round, counted from 0.
    """

    values: Singles
    weights: Singles
    rounds: Ints
    questions: int


@dataclass(frozen=True)
class Scale:
    """How large the weights of a season's questions are (`ResultMatrix.weights`).

    `smallest` and `largest` are the smallest and largest weight of a question. `all_differ` is the
    sum of the squared weights in the first round. It equals the sum of squared differences between
    two nodes if each question of that round is solved by exactly one of the two.
    """

    smallest: float
    largest: float
    all_differ: float


@dataclass(frozen=True)
class Stretch:
    """Sums over consecutive rounds for pairs of nodes, in the columns that count for both nodes.

    `differences` is the sum of the first node's values minus the sum of the second node's values.
    `by_question` is the sum of the squared differences in columns for single questions, and
    `by_round` in columns for whole rounds. `shared` is the number of rounds that count for both
    nodes; a round counts as a fraction if only some of its questions count for both.
    """

    differences: Reals
    by_question: Reals
    by_round: Reals
    shared: Reals


def rank_nodes(matrix: ResultMatrix, scores: Floats, *, alpha: float = 0.05) -> tuple[Ints, Ints]:
    """Return each node's best and worst rank; nodes that do not differ significantly share ranks.

    Row i of `matrix` and element i of `scores` belong to node i. Node i is better than j if the
    evidence (`weigh`) is significant after Holm's correction over all pairs (S. Holm, Scandinavian
    Journal of Statistics 6, 1979), and node i is ahead both in the sum of differences and in
    `scores`. The best rank is 1 + the number of better nodes; the worst rank is the number of
    nodes minus the number of worse ones. The probability that equal nodes are ever ranked apart in
    a season is at most `alpha`.
    """
    nodes = len(scores)
    tiles = list(_compare_pairs(matrix))
    level = _find_level(tiles, pairs=nodes * (nodes - 1) // 2, alpha=alpha)
    better, worse = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for rows, columns, evidence in tiles:
        gaps = scores[rows, None] - scores[None, columns]
        above = (evidence >= level) & (gaps > 0)
        below = (evidence <= -level) & (gaps < 0)
        worse[rows] += above.sum(axis=1)
        better[columns] += above.sum(axis=0)
        worse[columns] += below.sum(axis=0)
        better[rows] += below.sum(axis=1)
    return 1 + better, nodes - worse


def weigh(stretches: list[Stretch], scale: Scale) -> Reals:
    """Return the log evidence that the two nodes of each pair differ, after all stretches.

    The result has the shape of the arrays in `stretches`, which must not be empty.

    Let d be the difference between the two nodes in one column of the matrix. If the nodes are
    equal, d is as likely as -d. If the bet z on a column depends only on earlier columns, then the
    product over all columns of

        exp(z d) / cosh(z d),   where log cosh(z d) <= (z d)² / 2,

    is a martingale that starts at 1 (V. de la Peña, Annals of Probability 27(1), 1999), and so is
    an average of several such products. Half of the stake is bet on each of the two nodes. Each
    half is divided among several bets, in the proportions `_SHARES`: one bet for each of EFFECTS,
    and the constant STEADY_BET. The bet for an effect is the effect divided by the variance of a
    round's difference. This variance is estimated before each stretch, from a prior and the squared
    differences in earlier stretches.

    The code divides by at least cosh(z d), so the expected value of the product is at most 1. For a
    whole round, the divisor is exp((z d)² / 2). For a question, it is cosh(z s) to the power
    (d / s)², where s is `scale.smallest`. This is at least cosh(z d), because log cosh(x) / x²
    decreases, and |d| is at least s unless d is 0.

    Of two nodes with equal scores, each may be better at some datasets. Then they are equal in the
    sum over a round, but not in each question, and the bound on errors is not proven. With the
    limit `_MAX_PER_QUESTION`, the bound held in simulations (`make bench-calibration`).
    """
    pairs = stretches[0].differences
    squares = np.full_like(pairs, _PRIOR_ROUNDS * _PRIOR_DIFFERING * scale.all_differ)
    shared = np.full_like(pairs, _PRIOR_ROUNDS)
    gain = price = np.zeros_like(pairs, shape=(len(_SHARES), *pairs.shape))
    for stretch in stretches:
        variance = np.maximum(squares / shared, _MIN_DIFFERING * scale.all_differ)
        steady = np.full_like(pairs, STEADY_BET)
        bet = np.stack([*np.divide.outer(EFFECTS, variance), steady])
        bet = np.minimum(bet, _MAX_PER_QUESTION / scale.largest)
        gain = gain + bet * stretch.differences
        price = price + stretch.by_question / scale.smallest**2 * _log_cosh(bet * scale.smallest)
        price = price + stretch.by_round * bet**2 / 2
        squares = squares + stretch.by_question + stretch.by_round
        shared = shared + stretch.shared
    wealth = _log_cosh(gain) - price + np.log(_SHARES).reshape(-1, *([1] * pairs.ndim))
    largest = wealth.max(axis=0)
    total: Reals = largest + np.log(np.exp(wealth - largest).sum(axis=0))
    return total


def _log_cosh(x: Reals) -> Reals:
    size = np.abs(x)
    value: Reals = size + np.log1p(np.exp(-2 * size)) - _LOG_2
    return value


def _compare_pairs(matrix: ResultMatrix) -> Iterator[Tile]:
    """Yield the log evidence of all pairs of nodes, in tiles of rows and columns.

    If the rows and the columns of a tile are the same nodes, each pair has its evidence above the
    diagonal, and all other elements are 0.
    """
    present = ~np.isnan(matrix.values)
    values, present = np.where(present, matrix.values, 0), present.astype(np.float32)
    scale, spans = _find_scale(matrix), list(_spans(matrix))
    # Without rounds there is nothing to compare.
    nodes = len(values) if spans else 0
    for i in range(0, nodes, _TILE):
        rows = slice(i, i + _TILE)
        for j in range(i, nodes, _TILE):
            columns = slice(j, j + _TILE)
            stretches = [_add_up(matrix, span, values, present, rows, columns) for span in spans]
            evidence = _weigh_tile(stretches, scale)
            yield rows, columns, np.triu(evidence, k=1) if i == j else evidence


def _find_scale(matrix: ResultMatrix) -> Scale:
    questions = matrix.weights[: matrix.questions]
    return Scale(
        smallest=float(questions.min(initial=1)),
        largest=float(questions.max()) if questions.size else 1.0,
        all_differ=float((matrix.weights[matrix.rounds == 0] ** 2).sum()),
    )


def _spans(matrix: ResultMatrix) -> Iterator[slice]:
    """Yield the columns of each stretch of rounds, in order.

    The stretches have 1, 1, 2, 4, ... rounds. `weigh` recomputes its bets before each stretch.
    """
    if not len(matrix.rounds):
        return
    total = int(matrix.rounds[-1]) + 1
    starts = [0, 1]
    while starts[-1] < total:
        starts.append(2 * starts[-1])
    for first, last in pairwise(np.searchsorted(matrix.rounds, starts)):
        yield slice(int(first), int(last))


def _add_up(
    matrix: ResultMatrix,
    span: slice,
    values: Singles,
    present: Singles,
    rows: slice,
    columns: slice,
) -> Stretch:
    """Return sums over the matrix columns in `span`, for all pairs of nodes in a tile.

    `rows` and `columns` select nodes; a pair has one node of each. `values` and `present` have a
    row per node. `present` is 1 where a matrix column counts for the node, otherwise 0; where it is
    0, `values` must be 0 too.
    """
    weights, single = matrix.weights[span], max(0, matrix.questions - span.start)
    one, other = values[rows, span], values[columns, span]
    here, here_too = present[rows, span], present[columns, span]
    # Most nodes take part in most rounds, and without gaps plain sums replace most products.
    whole = bool(here.all() and here_too.all())
    if whole:
        differences = one.sum(axis=1)[:, None] - other.sum(axis=1)
        shared = np.broadcast_to(weights.sum(), differences.shape)
    else:
        differences = one @ here_too.T - here @ other.T
        shared = (here * weights) @ here_too.T
    by_question, by_round = (
        _add_squares(one[:, part], other[:, part], here[:, part], here_too[:, part], whole=whole)
        for part in (slice(None, single), slice(single, None))
    )
    return Stretch(differences, by_question, by_round, shared)


def _add_squares(
    one: Singles, other: Singles, here: Singles, here_too: Singles, *, whole: bool
) -> Singles:
    """Return the sums of squared differences [rows of one, rows of other] for all pairs of nodes.

    `one` and `other` have a row of values for each node. `here` is 1 where the column counts for
    the node of `one`, otherwise 0, and `here_too` says this of the nodes of `other`. A pair's sum
    is over the columns that count for both nodes. `whole` says that all columns count for all
    nodes.
    """
    if not one.shape[1]:
        return np.broadcast_to(np.float32(0), (len(one), len(other)))
    sums: Singles = one @ (-2 * other.T)
    if whole:
        sums += (one**2).sum(axis=1)[:, None]
        sums += (other**2).sum(axis=1)
    else:
        sums += one**2 @ here_too.T
        sums += here @ other.T**2
    return np.maximum(sums, 0, out=sums)


def _weigh_tile(stretches: list[Stretch], scale: Scale) -> Singles:
    """Return the log evidence for each pair of a row's node and a column's node in a tile.

    It is positive if the row's node is ahead and negative if the column's node is ahead. It is 0 if
    the evidence is below 1, or if the nodes are not more than `_MIN_ERRORS` standard errors apart.
    """
    differences = sum((each.differences for each in stretches), np.zeros(()))
    squares = sum((each.by_question + each.by_round for each in stretches), np.zeros(()))
    apart = (differences**2 > _MIN_ERRORS**2 * squares) & (squares > _ROUNDING)
    evidence = np.zeros(differences.shape, dtype=np.float32)
    if apart.any():
        chosen = [
            Stretch(*(getattr(each, name)[apart] for name in Stretch.__dataclass_fields__))
            for each in stretches
        ]
        found = weigh(chosen, scale)
        evidence[apart] = np.sign(differences[apart]) * np.maximum(found, 0)
    return evidence


def _find_level(tiles: list[Tile], *, pairs: int, alpha: float) -> float:
    """Return the smallest log evidence that is significant after Holm's correction over all pairs.

    The pair with the most evidence must reach `pairs` / alpha. Each pair that is found to differ
    makes this level lower for the next pair: after k such pairs, it is (`pairs` - k) / alpha.
    """
    rejected = 0
    while True:
        level = float(np.log(max(1, pairs - rejected) / alpha))
        reached = sum(int(np.count_nonzero(np.abs(each) >= level)) for *_, each in tiles)
        if reached == rejected:
            return level
        rejected = reached
