"""Counts and probabilities of the wrong texts that two nodes share; pure functions on arrays.

`copying` explains the test. Each different wrong text has a number, the same for all questions. In
`texts` [N, Q], a row is a node and a column is a question. The value is the number of the wrong
text that the node gave to the question, or -1 if it gave none. `models` [N] has the number of each
node's model.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# With fewer other nodes than this there is nothing to compare a pair with.
MIN_WITNESSES = 3
# Pairs that share fewer texts are not tested: two matches, each with a probability of at least
# 1 / (N-1), are never significant after an adjustment over N(N-1)/2 pairs.
MIN_MATCHES = 3
# On each question, nodes are sorted by their texts on it and on the following questions, _DEPTH
# questions in all. The next _NEIGHBOURS nodes in that order are a node's neighbours.
_NEIGHBOURS = 11
_DEPTH = 8
# Pairs compared at a time, to bound memory.
_CHUNK = 4096

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


# ---- which pairs to test


def find_candidates(texts: Ints) -> Ints:
    """Return the pairs [P, 2] of nodes that meet on at least MIN_MATCHES questions.

    A node is given as its row in `texts`; the lower row comes first. Two nodes meet on a question
    if they gave the same text and are at most _NEIGHBOURS places apart when nodes are sorted by
    text. So if at most twelve nodes gave a text, all of their pairs meet. If more nodes gave it,
    only neighbours meet, because the number of all pairs grows as N squared. Ties are broken by the
    texts of the following questions, so nodes that share many texts are neighbours on many
    questions. Nodes that share all texts keep their original order, and are therefore neighbours of
    the same nodes on every question.
    """
    nodes, questions = texts.shape
    met = [np.empty(0, dtype=np.int64)]
    for question in range(questions):
        columns = [(question + ahead) % questions for ahead in range(min(_DEPTH, questions))]
        order = np.lexsort(texts[:, columns[::-1]].T)
        order = order[texts[order, question] >= 0]
        sorted_texts = texts[order, question]
        for distance in range(1, min(_NEIGHBOURS + 1, order.size)):
            meets = sorted_texts[distance:] == sorted_texts[:-distance]
            one, other = order[distance:][meets], order[:-distance][meets]
            met.append(np.minimum(one, other) * nodes + np.maximum(one, other))
    keys, counts = np.unique(np.concatenate(met), return_counts=True)
    return np.stack(np.divmod(keys[counts >= MIN_MATCHES], max(nodes, 1)), axis=1)


# ---- how likely their matches are


@dataclass(frozen=True)
class PairComparison:
    """The tested pairs of nodes, and the results of each pair.

    `pairs` [P, 2] are row numbers of `texts` (see the module); the other arrays are [P].
    `both_wrong` counts the questions that both nodes answered wrongly, and `matches` those of them
    on which the texts are equal. `expected` is the number of matches expected by chance, and
    `p_values` the probability of at least `matches` matches by chance. If a pair shares a text on
    several questions, only the first of these questions is counted.
    """

    pairs: Ints
    matches: Ints
    both_wrong: Ints
    expected: Floats
    p_values: Floats


@dataclass(frozen=True)
class _Witnesses:
    """Counts of wrong answers in the group of each node: all nodes, or the nodes of its model.

    For each node and question [N, Q], `alike` counts the nodes of the group that gave the same text
    as the node, and `wrong` the nodes of the group with any wrong answer to the question. `present`
    [N] counts the nodes of the group with a wrong answer to any question. All counts include the
    node.
    """

    alike: Ints
    wrong: Ints
    present: Ints

    def text_shares(self, nodes: Ints, match: Flags, *, partner: Flags) -> Floats:
        """Return the share [P, Q] of each node's text among its group's wrong answers.

        `nodes` [P] has one node of each pair. The answer of the pair's other node, the partner, is
        left out of the share: `partner` [P] is true where the partner is in the group, and `match`
        [P, Q] where the partner gave the same text.
        """
        inside = partner[:, None]
        alike, wrong = self.alike[nodes] - (match & inside), self.wrong[nodes] - inside
        shares: Floats = alike / np.maximum(wrong, 1)
        return shares


def compare_pairs(pairs: Ints, texts: Ints, models: Ints) -> PairComparison:
    """Return the pairs whose nodes share more texts than expected, with the results of their test.

    `pairs` [P, 2] are row numbers of `texts` (see the module). A pair is left out if it has no more
    matches than expected by chance, or if fewer than MIN_WITNESSES other nodes have wrong answers.
    If the nodes of the pair have the same model, only other nodes of this model are counted.
    """
    all_nodes = _count_witnesses(texts, np.zeros_like(models))
    of_model = _count_witnesses(texts, models)
    results = []
    for start in range(0, max(len(pairs), 1), _CHUNK):
        chunk = pairs[start : start + _CHUNK]
        same_model = models[chunk[:, 0]] == models[chunk[:, 1]]
        present = np.where(
            same_model, of_model.present[chunk[:, 0]], all_nodes.present[chunk[:, 0]]
        )
        testable = present - 2 >= MIN_WITNESSES
        chunk, same_model = chunk[testable], same_model[testable]
        one, other = texts[chunk.T]
        both = (one >= 0) & (other >= 0)
        match = both & (one == other)
        probabilities = np.where(
            both, _find_probabilities(chunk, match, same_model, all_nodes, of_model), 0.0
        )
        results.append(_test_pairs(chunk, texts, both, match, probabilities))
    return PairComparison(*(np.concatenate(column) for column in zip(*results, strict=True)))


def _find_probabilities(
    pairs: Ints, match: Flags, same_model: Flags, all_nodes: _Witnesses, of_model: _Witnesses
) -> Floats:
    """Return for each pair and question [P, Q] how likely equal texts are by chance.

    The probability is the largest of the up to four shares that `find_copies` explains. `match`
    [P, Q] is true where the two texts are equal, and `same_model` [P] where both nodes have the
    same model.
    """
    probabilities = np.zeros(match.shape)
    for nodes in pairs.T:
        by_all = all_nodes.text_shares(nodes, match, partner=np.ones_like(same_model))
        by_model = of_model.text_shares(nodes, match, partner=same_model)
        has_witnesses = of_model.present[nodes] - 1 - same_model >= MIN_WITNESSES
        by_model[~has_witnesses] = 0.0
        probabilities = np.maximum(probabilities, np.maximum(by_all, by_model))
    return probabilities


def _test_pairs(
    pairs: Ints, texts: Ints, both: Flags, match: Flags, probabilities: Floats
) -> tuple[Ints, Ints, Ints, Floats, Floats]:
    """Return the columns of a `PairComparison` for the pairs with more matches than expected.

    The pairs are selected first. Then, where a pair shares a text on several questions, all matches
    on this text but the first are removed. Each removal lowers the number of matches by 1 and the
    expected number by at most 1. So a pair that was not selected could not become a finding.
    """
    more = match.sum(axis=1) > probabilities.sum(axis=1)
    pairs, both, match, probabilities = pairs[more], both[more], match[more], probabilities[more]
    repeats = _find_repeats(texts[pairs[:, 0]], match)
    both &= ~repeats
    match &= ~repeats
    probabilities[repeats] = 0.0
    matches = match.sum(axis=1)
    tails = compute_tails(probabilities, matches)
    return pairs, matches, both.sum(axis=1), probabilities.sum(axis=1), tails


def _count_witnesses(texts: Ints, groups: Ints) -> _Witnesses:
    """Return the counts of wrong answers in each node's group.

    `texts` [N, Q] is explained in the module. `groups` [N] has the number of each node's group.
    """
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


def compute_tails(probabilities: Floats, at_least: Ints) -> Floats:
    """Return P(K >= at_least) [P] for sums K of independent trials with `probabilities` [P, Q].

    Builds the Poisson-binomial distribution exactly, trial by trial. scipy's `poisson_binom.sf` is
    computed as `1 - cdf` and loses all precision below 1e-15, but findings have such small
    p-values.
    """
    rows, trials = probabilities.shape
    mass = np.zeros((rows, trials + 1))
    mass[:, 0] = 1.0
    for trial in range(trials):
        hit = probabilities[:, trial : trial + 1]
        kept = mass[:, : trial + 1]
        moved = kept * hit
        kept *= 1 - hit
        mass[:, 1 : trial + 2] += moved
    tail: Floats = np.where(np.arange(trials + 1) >= at_least[:, None], mass, 0.0).sum(axis=1)
    return tail
