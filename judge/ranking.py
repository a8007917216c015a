"""Ranks of nodes that answered the same questions; pure.

All nodes of a round get the same questions, so two nodes are compared on the questions that both
answered: those that both solved or both missed say nothing about which is better, and hard
questions harm nobody. What is left are the discordant ones, solved by one of the two.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

# Nodes on each side of a tile of pairs, so that its arrays fit a processor's cache.
_TILE = 512

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
# Rows, columns, questions that only the row's node solved, questions that only the column's did.
Tile = tuple[slice, slice, Ints, Ints]


def rank_nodes(
    solved: Bools, answered: Bools, scores: Floats, *, alpha: float = 0.05
) -> tuple[Ints, Ints]:
    """Return each node's best and worst rank; nodes that cannot be told apart share ranks.

    `solved` and `answered` have one row for each node and one column for each question; a question
    counts for a pair where both have `answered` true. `scores` are the nodes' macro scores.

    Node i is better than j when McNemar's exact two-sided test on their discordant questions
    (Q. McNemar, Psychometrika 12, 1947) is significant for i after Holm's correction over all
    pairs (S. Holm, Scandinavian Journal of Statistics 6, 1979), and its macro score is higher too.
    The best rank is 1 + the number of nodes that are better; the worst one is the number of all
    minus those that are worse. Nodes that are alike are told apart in at most `alpha` of all cases,
    however much their answers depend on the question: for one look at one set of questions, not
    for the best moment of many.
    """
    right = (solved & answered).astype(np.float32)
    wrong = (~solved & answered).astype(np.float32)
    limits = _find_limits(right, wrong, alpha=alpha)
    nodes = len(right)
    better, worse = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    for rows, columns, won, lost in _discordant(right, wrong):
        significant = np.minimum(won, lost) <= limits[won + lost]
        gaps = scores[rows, None] - scores[None, columns]
        above = significant & (won > lost) & (gaps > 0)
        below = significant & (won < lost) & (gaps < 0)
        worse[rows] += above.sum(axis=1)
        better[columns] += above.sum(axis=0)
        worse[columns] += below.sum(axis=0)
        better[rows] += below.sum(axis=1)
    return 1 + better, nodes - worse


def _discordant(right: Counts, wrong: Counts) -> Iterator[Tile]:
    """Yield the discordant counts of all pairs, each pair once.

    Counts are sums of zeros and ones and therefore exact in float32 up to 2^24 questions. Places
    of a tile that hold no pair of their own (a node with itself, a pair seen before) are zero.
    """
    nodes = len(right)
    for i in range(0, nodes, _TILE):
        rows = slice(i, i + _TILE)
        # A whole strip at once: threads of a matrix product wait for each other at its end.
        won = right[rows] @ wrong[i:].T
        lost = wrong[rows] @ right[i:].T
        won[:, :_TILE], lost[:, :_TILE] = np.triu(won[:, :_TILE]), np.triu(lost[:, :_TILE])
        for j in range(i, nodes, _TILE):
            part = slice(j - i, j - i + _TILE)
            columns = slice(j, j + _TILE)
            yield rows, columns, won[:, part].astype(np.int64), lost[:, part].astype(np.int64)


def _find_limits(right: Counts, wrong: Counts, *, alpha: float) -> Ints:
    """Return, by number of discordant questions, how few may go to the loser of a real difference.

    A pair is significant when the smaller of its two counts is at most the limit at their sum;
    -1 where no split is significant.

    A p-value depends on the two counts only, so Holm's procedure needs no list of all pairs, but
    only how many there are of each kind. Up to alpha / pairs every p-value is significant and
    above alpha none is: pairs are told apart by kind only in the narrow band between.
    """
    # Imported late: it takes most of a second, and few processes need it.
    from scipy.stats import binom

    nodes, questions = right.shape
    pairs = max(1, nodes * (nodes - 1) // 2)
    sums = np.arange(questions + 1)
    first = binom.ppf(alpha / pairs / 2, sums, 0.5).astype(np.int64)
    last = binom.ppf(alpha / 2, sums, 0.5).astype(np.int64)
    widths = last - first + 1
    # Kind (sum, fewer) of the band has its tally at offsets[sum] + fewer.
    offsets = np.cumsum(widths) - widths - first
    certain, tally = 0, np.zeros(widths.sum(), np.int64)
    for _, _, won, lost in _discordant(right, wrong):
        total, fewer = won + lost, np.minimum(won, lost)
        certain += int(np.count_nonzero(fewer < first[total]))
        in_band = (fewer >= first[total]) & (fewer <= last[total])
        kinds = (offsets[total] + fewer)[in_band]
        tally += np.bincount(kinds, minlength=len(tally))
    seen = np.flatnonzero(tally)
    total = np.repeat(sums, widths)[seen]
    fewer = seen - offsets[total]
    p_values = 2 * binom.cdf(fewer, total, 0.5)
    rejected = _reject(p_values, tally[seen], before=certain, pairs=pairs, alpha=alpha)
    limits: Ints = first - 1
    np.maximum.at(limits, total[rejected], fewer[rejected])
    return limits


def _reject(p_values: Floats, tally: Ints, *, before: int, pairs: int, alpha: float) -> Bools:
    """Return which p-values Holm's procedure rejects, where each occurs `tally` times.

    `before` smaller ones are rejected already. Equal p-values are decided together: the first of
    them meets the strictest threshold, and once it passes the others do.
    """
    levels, kinds = np.unique(p_values[p_values <= alpha], return_inverse=True)
    held = np.bincount(kinds, weights=tally[p_values <= alpha], minlength=len(levels))
    smaller = before + np.cumsum(held) - held
    passed = np.logical_and.accumulate(levels <= alpha / (pairs - smaller))
    return np.isin(p_values, levels[passed])
