"""Detection of copied answers: pairs of nodes that share improbably many wrong answers; no I/O.

Correct answers agree because they are correct. An answer can be wrong in many ways, so the same
wrong answers on many questions are evidence of copying (G. O. Wesolowsky, "Detecting excessive
similarity in answers on multiple choice exams", Journal of Applied Statistics 27(7), 2000). As in
the K index and the omega family (W. J. van der Linden and L. Sotaridona, Journal of Educational and
Behavioral Statistics 31(3), 2006), the test takes the answers of one node of a pair as given, and
asks how likely the other node is to give the same answers. This probability is estimated from the
*witnesses*, the nodes that were wrong on the same question.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from judge.statistics.flagging import choose_flagged, format_p_value
from judge.statistics.matching import Ints, compare_pairs, find_candidates
from swarm_record.stats import adjust_by_holm

# Strict, because a flag accuses a node of cheating: with a round every five minutes, honest nodes
# are flagged at most once in two years.
ALPHA = 5e-6


class WrongAnswer(NamedTuple):
    """An answer that was graded as wrong.

    `text` is the extracted answer. `find_copies` ignores its case, and treats each run of white
    space as one space. `question` may be any number that identifies the question, so that several
    rounds can be searched together.
    """

    question: int
    node: int
    model: str
    text: str


@dataclass(frozen=True)
class CopyFinding:
    """Two nodes (ids `first` < `second`) that share more wrong answers than expected by chance.

    Both nodes answered `both_wrong` questions wrongly, and on `matches` of these questions gave the
    same text; `expected` is the number of matches expected by chance. If the pair shares a text on
    several questions, all three numbers count only the first of these questions. `p_adjusted` is
    the p-value adjusted over all pairs of nodes with wrong answers; `pairs` is the number of these
    pairs. `same_model` says whether both nodes declare the same model.
    """

    first: int
    second: int
    matches: int
    both_wrong: int
    expected: float
    p_value: float
    p_adjusted: float
    pairs: int
    same_model: bool

    def describe(self, other: str) -> str:
        """Return an English description, as seen from `first`; `other` is the name of `second`."""
        among = " even among nodes of their model" if self.same_model else ""
        return (
            f"{self.matches} of {self.both_wrong} wrong answers in common with {other}; "
            f"{self.expected:.1f} expected by chance{among} "
            f"({format_p_value(self.p_adjusted)} after Holm's adjustment over {self.pairs:,} pairs)"
        )


def find_copies(answers: Iterable[WrongAnswer], *, alpha: float = ALPHA) -> list[CopyFinding]:
    """Return the pairs of nodes that share too many wrong answers, smallest p-value first.

    `answers` are all wrong answers of one or more rounds, one for each node and question. Empty
    answers are ignored. The p-values are adjusted by Holm's method over all N(N-1)/2 pairs of the N
    nodes in `answers`, including pairs that are not tested. A pair is returned if its adjusted
    p-value is at most `alpha`.

    Under the null hypothesis, two nodes that are both wrong on a question give the same text with
    probability p, independently for each question. So their number of matches is Poisson-binomial.

    p is estimated as the largest of up to four shares, two for each node of the pair. The first is
    the share of answers with the same text as the node's answer among all wrong answers to the
    question. The second is the same share among the wrong answers of nodes of this node's model. It
    is used only if at least MIN_WITNESSES nodes of this model, besides the pair, have wrong
    answers. Both shares include the node's own answer and leave out the answer of the pair's other
    node.

    - The largest share protects the innocent nodes of a victim's model: they often answer like the
      victim, and therefore also like a node of another model that copied from the victim.
    - If few nodes are wrong on a question, the share approaches 1, and if all of them give the same
      text, it is 1. A match then proves nothing.
    - Two nodes of different models are tested only if at least MIN_WITNESSES other nodes have wrong
      answers. Two nodes of one model are tested only if at least MIN_WITNESSES other nodes of that
      model have wrong answers: nodes with equal weights give equal greedy answers, and fewer other
      nodes cannot show which answers are common.
    - A text that a pair shares on several questions counts once, because a collapsed model gives
      the same answer everywhere.
    - Only wrong answers give the test its power. Among 60 nodes, it finds a node that copied all
      answers of another node in each round of 32 questions, and in about three of four rounds of 16
      questions. The more nodes copy from each other, the more their answers look like common
      mistakes.
    - Nodes that have hardly trained may answer alike without copying when the other nodes of their
      model have improved. A person must decide whether this is so, and which of two nodes copied.
    """
    table = _read_answers(answers)
    found = compare_pairs(find_candidates(table.texts), table.texts, table.models)
    total = len(table.nodes) * (len(table.nodes) - 1) // 2
    adjusted = adjust_by_holm(found.p_values, hypotheses=total)
    return [
        CopyFinding(
            first=table.nodes[one],
            second=table.nodes[other],
            matches=int(found.matches[i]),
            both_wrong=int(found.both_wrong[i]),
            expected=float(found.expected[i]),
            p_value=float(found.p_values[i]),
            p_adjusted=float(adjusted[i]),
            pairs=total,
            same_model=bool(table.models[one] == table.models[other]),
        )
        for i in choose_flagged(adjusted, alpha)
        for one, other in [found.pairs[i]]
    ]


# ---- the answers as a table


@dataclass(frozen=True)
class _Table:
    """The wrong answers as arrays with one row per node, in ascending order of the ids `nodes`.

    Each different answer has a number, the same for all questions. `texts` [N, Q] has the number of
    each node's answer to each question, or -1 if the node has no wrong answer to the question, or
    an empty one. `models` [N] has the number of each node's model.
    """

    nodes: list[int]
    models: Ints
    texts: Ints


def _read_answers(answers: Iterable[WrongAnswer]) -> _Table:
    """Return the answers as a table, with models and normalised texts replaced by numbers."""
    questions, owners, texts = array("q"), array("q"), array("q")
    numbers: dict[str, int] = {"": -1}
    models: dict[int, str] = {}
    for question, node, model, text in answers:
        questions.append(question)
        owners.append(node)
        texts.append(numbers.setdefault(" ".join(text.split()).casefold(), len(numbers)))
        models[node] = model
    nodes, rows = np.unique(np.asarray(owners, dtype=np.int64), return_inverse=True)
    positions, columns = np.unique(np.asarray(questions, dtype=np.int64), return_inverse=True)
    table = np.full((nodes.size, positions.size), -1, dtype=np.int64)
    table[rows, columns] = texts
    ids = [int(node) for node in nodes]
    _, numbered = np.unique(np.array([models[node] for node in ids], str), return_inverse=True)
    return _Table(nodes=ids, models=numbered, texts=table)
