"""Ranks of nodes that took part in the same rounds, valid however often they are looked at; pure.

Two nodes are compared by the difference of their macro scores, which the leaderboard shows, over
the questions that both answered. A leaderboard is read after every round of a season, and a test
for one look would find differences between equal nodes sooner or later. So the evidence here is a
test martingale: between nodes that are alike it ever reaches 1 / alpha with a probability of at
most alpha (J. Ville, 1939; A. Ramdas et al., Statistical Science 38(4), 2023).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

# The differences of macro scores that the evidence is sought for, and the share of each: above all
# five points, and others to see large ones within few rounds and small ones at all.
EFFECTS = np.array([0.05, 0.025, 0.2, 0.6], dtype=np.float32)
# The last share is for a bet that never changes. It cannot ruin itself on a pair that differed in
# nothing for long: it gains in each round in which its node is ahead.
STEADY_BET = 1.5
_SHARES = np.array([0.7, 0.1, 0.08, 0.05, 0.07], dtype=np.float32)
# Bets are made anew after 1, 2, 4, 8, ... rounds, from the variance of the rounds before. To begin
# with, half a round is assumed in which a quarter of the answers differ; fewer than the last of
# these are never assumed.
_PRIOR_ROUNDS, _PRIOR_DIFFERING, _LEAST_DIFFERING = 0.5, 0.25, 0.04
# The most that a bet gains on a single question. If one node is better at the dataset of an uneven
# mix that is asked seldom, the other one leads steadily until such a question comes, and a larger
# bet on that lead would win too often before it does.
_MOST_PER_QUESTION = 0.5
# Pairs closer than so many standard errors are not looked at: no claim would come of it.
_LEAST_ERRORS = 2.0
# Nodes on each side of a tile of pairs, so that its arrays fit a processor's cache.
_TILE = 512
# Sums of squares below this are rounding.
_ROUNDING = 1e-6
_LOG_2 = np.float32(np.log(2))

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Reals = npt.NDArray[np.floating[Any]]
Ints = npt.NDArray[np.int64]
# Rows, columns, and the log evidence of their pairs, above 0 if the row's node is ahead.
Tile = tuple[slice, slice, Singles]


@dataclass(frozen=True)
class Record:
    """What nodes did in a season: its first questions one by one, and later rounds as a whole.

    `values` [nodes, columns] is what a column adds to a node's macro score of its round, NaN where
    the node took no part. A question adds its weight or nothing, a round the score. `weights`
    [columns] is the most that a column can add: 1 / (datasets · questions of its dataset) for a
    question, 1 for a round. `rounds` [columns] numbers the columns' rounds, from 0, in order; the
    first `questions` columns are questions.
    """

    values: Singles
    weights: Singles
    rounds: Ints
    questions: int


@dataclass(frozen=True)
class Scale:
    """What a season's questions can add to a score of their round.

    `least` and `most` are the least and the most that one of them adds; `all_differ` is the sum of
    squares of a round in which two nodes answer all questions differently.
    """

    least: float
    most: float
    all_differ: float


@dataclass(frozen=True)
class Stretch:
    """What pairs did in some rounds: sums of differences, and of their squares.

    `by_question` and `by_round` are the squares of single questions and of whole rounds, `shared`
    is how many rounds both took part in.
    """

    differences: Reals
    by_question: Reals
    by_round: Reals
    shared: Reals


def rank_nodes(record: Record, scores: Floats, *, alpha: float = 0.05) -> tuple[Ints, Ints]:
    """Return each node's best and worst rank; nodes that cannot be told apart share ranks.

    Node i is better than j when the evidence (`weigh`) for it is significant after Holm's
    correction over all pairs (S. Holm, Scandinavian Journal of Statistics 6, 1979), and its macro
    score, of `scores`, is higher too. The best rank is 1 + the number of nodes that are better; the
    worst is the number of all minus those that are worse. In at most `alpha` of all seasons nodes
    that are alike are told apart, at whatever time.
    """
    nodes = len(scores)
    tiles = list(_compare_pairs(record))
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

    If two nodes are alike, a difference d is as likely to be -d, whatever its size. Then for a
    bet z that does not depend on d or on anything later,

        product of exp(z d) / cosh(z d),   log cosh(z d) <= (z d)² / 2,

    is a martingale that begins at 1 (V. de la Peña, Annals of Probability 27(1), 1999), and so is
    an average of several. The best bet on an effect is effect / variance of a round's difference:
    it is made before a stretch, from the squares before it. Half is bet on either node, and
    `_SHARES` on the effects. As log cosh(x) / x² falls, questions that add more than `scale.least`
    pay the price of as many that add that much, which is too much: the product is then worth less
    than 1 on average.

    Nodes with equal scores that are better at different datasets are alike in the sum over a round,
    not in each question. For them the bound is not proven; `_MOST_PER_QUESTION` keeps it in
    simulation (`make bench-calibration`).
    """
    pairs = stretches[0].differences
    squares = np.full_like(pairs, _PRIOR_ROUNDS * _PRIOR_DIFFERING * scale.all_differ)
    shared = np.full_like(pairs, _PRIOR_ROUNDS)
    gain = price = np.zeros_like(pairs, shape=(len(_SHARES), *pairs.shape))
    for stretch in stretches:
        variance = np.maximum(squares / shared, _LEAST_DIFFERING * scale.all_differ)
        steady = np.full_like(pairs, STEADY_BET)
        bet = np.stack([*np.divide.outer(EFFECTS, variance), steady])
        bet = np.minimum(bet, _MOST_PER_QUESTION / scale.most)
        gain = gain + bet * stretch.differences
        price = price + stretch.by_question / scale.least**2 * _log_cosh(bet * scale.least)
        price = price + stretch.by_round * bet**2 / 2
        squares = squares + stretch.by_question + stretch.by_round
        shared = shared + stretch.shared
    wealth = _log_cosh(gain) - price + np.log(_SHARES).reshape(-1, *([1] * pairs.ndim))
    most = wealth.max(axis=0)
    total: Reals = most + np.log(np.exp(wealth - most).sum(axis=0))
    return total


def _log_cosh(x: Reals) -> Reals:
    size = np.abs(x)
    value: Reals = size + np.log1p(np.exp(-2 * size)) - _LOG_2
    return value


def _compare_pairs(record: Record) -> Iterator[Tile]:
    """Yield the evidence of all pairs, each once; 0 where a tile holds no pair of its own."""
    there = ~np.isnan(record.values)
    values, there = np.where(there, record.values, 0), there.astype(np.float32)
    scale, spans = _find_scale(record), list(_spans(record))
    # Without a round there is nothing to compare.
    nodes = len(values) if spans else 0
    for i in range(0, nodes, _TILE):
        rows = slice(i, i + _TILE)
        for j in range(i, nodes, _TILE):
            columns = slice(j, j + _TILE)
            stretches = [_add_up(record, span, values, there, rows, columns) for span in spans]
            evidence = _weigh_tile(stretches, scale)
            yield rows, columns, np.triu(evidence, k=1) if i == j else evidence


def _find_scale(record: Record) -> Scale:
    questions = record.weights[: record.questions]
    return Scale(
        least=float(questions.min(initial=1)),
        most=float(questions.max()) if questions.size else 1.0,
        all_differ=float((record.weights[record.rounds == 0] ** 2).sum()),
    )


def _spans(record: Record) -> Iterator[slice]:
    """Yield the columns of each stretch of rounds between two bets."""
    if not len(record.rounds):
        return
    total = int(record.rounds[-1]) + 1
    starts = [0, 1]
    while starts[-1] < total:
        starts.append(2 * starts[-1])
    for first, last in pairwise(np.searchsorted(record.rounds, starts)):
        yield slice(int(first), int(last))


def _add_up(
    record: Record, span: slice, values: Singles, there: Singles, rows: slice, columns: slice
) -> Stretch:
    """Return what the pairs of a tile did in the columns of a span."""
    weights, single = record.weights[span], max(0, record.questions - span.start)
    one, other = values[rows, span], values[columns, span]
    here, here_too = there[rows, span], there[columns, span]
    # Most nodes take part in most rounds, and without gaps most products are sums.
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
    """Return the sums of the squared differences of all pairs, over columns with both."""
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
    """Return the signed evidence of a tile's pairs, of those that are far enough apart."""
    differences = sum((each.differences for each in stretches), np.zeros(()))
    squares = sum((each.by_question + each.by_round for each in stretches), np.zeros(()))
    apart = (differences**2 > _LEAST_ERRORS**2 * squares) & (squares > _ROUNDING)
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
    """Return from what log evidence on Holm's procedure rejects.

    The first pair has to reach pairs / alpha; each that does lowers the bar for the next.
    """
    rejected = 0
    while True:
        level = float(np.log(max(1, pairs - rejected) / alpha))
        reached = sum(int(np.count_nonzero(np.abs(each) >= level)) for *_, each in tiles)
        if reached == rejected:
            return level
        rejected = reached
