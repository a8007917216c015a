"""How many texts two nodes share, and how likely that is; rows of numbers, pure.

Nodes are rows and questions columns of `texts` [N, Q]: equal numbers are equal texts, whatever
the question, and -1 stands where a node has no wrong answer. `models` [N] are numbers too. Whom
and what these stand for, and why it is tested so, is in `copying`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# With fewer other nodes than this there is nothing to compare a pair with.
MIN_WITNESSES = 3
# Pairs that share less are not looked at: two matches, each with a chance of 1 / (N-1) or more,
# never reach any usual level after an adjustment over N(N-1)/2 pairs.
MIN_MATCHES = 3
# So many nodes that follow a node in the order of a question count as its neighbours there ...
_NEIGHBOURS = 11
# ... and that order goes by the texts of this question and the next ones, so many in all.
_DEPTH = 8
# Pairs that are compared at a time, to bound memory.
_CHUNK = 4096

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


# ---- which pairs to look at


def find_candidates(texts: Ints) -> Ints:
    """Return pairs [P, 2] of rows, the lower first, that meet on MIN_MATCHES questions or more.

    Two nodes meet on a question if they share its text and are neighbours in an order of the
    nodes by text. So any two of twelve nodes or fewer with one text meet; of more, all pairs would
    be too many, at N nodes up to N squared. As the order goes on by the texts of the following
    questions, nodes that share many texts stand side by side on many questions, and a ring, whose
    members tie on all of them, keeps its members' own order and so the same neighbours.
    """
    nodes, questions = texts.shape
    met = [np.empty(0, dtype=np.int64)]
    for question in range(questions):
        columns = [(question + ahead) % questions for ahead in range(min(_DEPTH, questions))]
        order = np.lexsort(texts[:, columns[::-1]].T)
        order = order[texts[order, question] >= 0]
        given = texts[order, question]
        for distance in range(1, min(_NEIGHBOURS + 1, order.size)):
            meets = given[distance:] == given[:-distance]
            one, other = order[distance:][meets], order[:-distance][meets]
            met.append(np.minimum(one, other) * nodes + np.maximum(one, other))
    keys, times = np.unique(np.concatenate(met), return_counts=True)
    return np.stack(np.divmod(keys[times >= MIN_MATCHES], max(nodes, 1)), axis=1)


# ---- how likely their matches are


@dataclass(frozen=True)
class Comparison:
    """Tested `pairs` [P, 2] of rows with, of each [P], its figures."""

    pairs: Ints
    matches: Ints
    both_wrong: Ints
    expected: Floats
    p_values: Floats


@dataclass(frozen=True)
class _Witnesses:
    """What the nodes of each node's group answered, itself included.

    Of each node and question [N, Q], `alike` counts those with the node's text and `wrong` those
    who were wrong; `present` [N] counts those who were wrong anywhere.
    """

    alike: Ints
    wrong: Ints
    present: Ints

    def share_texts(self, nodes: Ints, match: Flags, *, partner: Flags) -> Floats:
        """Return what share of its group gave each node's text [P, Q], the partner left out.

        `partner` [P] is true where the partner is in the group; `match` where it gave that text.
        """
        inside = partner[:, None]
        alike, wrong = self.alike[nodes] - (match & inside), self.wrong[nodes] - inside
        shares: Floats = alike / np.maximum(wrong, 1)
        return shares


def compare_pairs(pairs: Ints, texts: Ints, models: Ints) -> Comparison:
    """Compare pairs [P, 2] of rows; leave out those that cannot be tested or are unremarkable."""
    everybody = _count_witnesses(texts, np.zeros_like(models))
    of_model = _count_witnesses(texts, models)
    parts = []
    for at in range(0, max(len(pairs), 1), _CHUNK):
        chunk = pairs[at : at + _CHUNK]
        fellows = models[chunk[:, 0]] == models[chunk[:, 1]]
        present = np.where(fellows, of_model.present[chunk[:, 0]], everybody.present[chunk[:, 0]])
        testable = present - 2 >= MIN_WITNESSES
        chunk, fellows = chunk[testable], fellows[testable]
        one, other = texts[chunk.T]
        both = (one >= 0) & (other >= 0)
        match = both & (one == other)
        chances = np.where(both, _find_chances(chunk, match, fellows, everybody, of_model), 0.0)
        parts.append(_test_pairs(chunk, texts, both, match, chances))
    return Comparison(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _find_chances(
    pairs: Ints, match: Flags, fellows: Flags, everybody: _Witnesses, of_model: _Witnesses
) -> Floats:
    """Return the chances [P, Q] that a pair matches; `fellows` [P] are of one model."""
    chances = np.zeros(match.shape)
    for nodes in pairs.T:
        by_all = everybody.share_texts(nodes, match, partner=np.ones_like(fellows))
        by_model = of_model.share_texts(nodes, match, partner=fellows)
        known = of_model.present[nodes] - 1 - fellows >= MIN_WITNESSES
        by_model[~known] = 0.0
        chances = np.maximum(chances, np.maximum(by_all, by_model))
    return chances


def _test_pairs(
    pairs: Ints, texts: Ints, both: Flags, match: Flags, chances: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return the columns of a `Comparison` of those pairs that match more than expected.

    The others are no findings, and leaving out repeats, which match, does not make them any.
    """
    more = match.sum(axis=1) > chances.sum(axis=1)
    pairs, both, match, chances = pairs[more], both[more], match[more], chances[more]
    repeats = _find_repeats(texts[pairs[:, 0]], match)
    both &= ~repeats
    match &= ~repeats
    chances[repeats] = 0.0
    matches = match.sum(axis=1)
    tails = compute_tails(chances, matches)
    return pairs, matches, both.sum(axis=1), chances.sum(axis=1), tails


def _count_witnesses(texts: Ints, groups: Ints) -> _Witnesses:
    """Count over the nodes of each of the `groups` [N]."""
    questions = texts.shape[1]
    is_wrong = texts >= 0
    wrong = np.zeros((groups.max(initial=0) + 1, questions), dtype=np.int64)
    np.add.at(wrong, groups, is_wrong)
    present = np.bincount(groups, weights=is_wrong.any(axis=1)).astype(np.int64)
    span = texts.max(initial=0) + 2
    cells = (groups[:, None] * questions + np.arange(questions)) * span + texts + 1
    _, where, counts = np.unique(cells, return_inverse=True, return_counts=True)
    return _Witnesses(counts[where].reshape(texts.shape), wrong[groups], present[groups])


def _find_repeats(texts: Ints, match: Flags) -> Flags:
    """Return which matches [P, Q] repeat a text that the pair shares on an earlier question."""
    columns = np.arange(texts.shape[1])
    shared = np.where(match, texts, -1 - columns)
    order = np.argsort(shared, axis=1, kind="stable")
    ranked = np.take_along_axis(shared, order, axis=1)
    again = np.zeros_like(match)
    again[:, 1:] = ranked[:, 1:] == ranked[:, :-1]
    repeats = np.empty_like(match)
    np.put_along_axis(repeats, order, again, axis=1)
    return repeats


def compute_tails(chances: Floats, at_least: Ints) -> Floats:
    """Return P(K >= at_least) [P] for sums K of independent trials with `chances` [P, Q].

    Exact: the Poisson-binomial distribution is built trial by trial. scipy's `poisson_binom.sf`
    is 1 - cdf, which is lost in rounding below 1e-15, and such tails are what is looked for.
    """
    rows, trials = chances.shape
    mass = np.zeros((rows, trials + 1))
    mass[:, 0] = 1.0
    for trial in range(trials):
        hit = chances[:, trial : trial + 1]
        kept = mass[:, : trial + 1]
        moved = kept * hit
        kept *= 1 - hit
        mass[:, 1 : trial + 2] += moved
    tail: Floats = np.where(np.arange(trials + 1) >= at_least[:, None], mass, 0.0).sum(axis=1)
    return tail
