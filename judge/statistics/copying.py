"""Copied answers: pairs of nodes that share more wrong answers than expected by chance; pure.

Correct answers agree because they are correct. An answer can be wrong in many ways, so the same
wrong answers on many questions are evidence (G. O. Wesolowsky, "Detecting excessive similarity in
answers on multiple choice exams", Journal of Applied Statistics 27(7), 2000). As in the K index
and the omega family (W. J. van der Linden and L. Sotaridona, Journal of Educational and Behavioral
Statistics 31(3), 2006), the test is conditional on the answers of one of the two nodes. The other
nodes that were wrong on the same question, the witnesses, show how common its answer is.
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

    `text` is the extracted answer; case is ignored, and each run of white space counts as one
    space. `question` may be any number that identifies the question, so `find_copies` can search
    several rounds together.
    """

    question: int
    node: int
    model: str
    text: str


@dataclass(frozen=True)
class CopyFinding:
    """Two nodes, `first` < `second`, that share more wrong answers than expected by chance.

    Their answers are the same on `matches` of the `both_wrong` questions that both answered
    wrongly, against `expected` by chance; repeats of a shared text are not counted. `p_adjusted` is
    adjusted over all `pairs` of nodes with wrong answers; `same_model` says whether both declare
    the same model.
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
        """Return the finding as an English sentence about a node; `other` names the other node."""
        among = " even among nodes of their model" if self.same_model else ""
        return (
            f"{self.matches} of {self.both_wrong} wrong answers in common with {other}; "
            f"{self.expected:.1f} expected by chance{among} "
            f"({format_p_value(self.p_adjusted)} after Holm's adjustment over {self.pairs:,} pairs)"
        )


def find_copies(answers: Iterable[WrongAnswer], *, alpha: float = ALPHA) -> list[CopyFinding]:
    """Return the pairs of nodes that share too many wrong answers, smallest p-value first.

    `answers` are all wrong answers of one or more rounds, one for each node and question; empty
    answers are no evidence. Under the null hypothesis, a node that is wrong on a question gives the
    same text as the other node of the pair, its partner, with a probability equal to that text's
    share among the witnesses. The witnesses are all other nodes that were wrong on the question, or
    only those of one of the two nodes' models (if it has at least MIN_WITNESSES nodes besides the
    two), whichever gives the larger share. Because of this choice, a node that copies is not paired
    with innocent nodes of the victim's model. The partner itself is a witness: with few witnesses
    the share approaches 1, and an answer that all give proves nothing. Where the two nodes gave
    different texts, the text with the larger share counts.
    The number of matches is then Poisson-binomial. Holm's adjustment is over all N(N-1)/2 pairs of
    nodes in `answers`, tested or not; pairs with an adjusted p-value of at most `alpha` are
    returned.

    - Two nodes of one model are tested only if MIN_WITNESSES other nodes of that model have wrong
      answers; two nodes of different models, only if MIN_WITNESSES other nodes of any model have.
      Equal weights give equal greedy answers, and fewer witnesses give nothing to compare with.
    - A text that a pair shares on several questions counts once, because a collapsed model gives
      the same answer everywhere.
    - Power comes from wrong answers: among 60 nodes, 32 questions reveal a node that copied all
      answers of another, and 16 questions do so in about three of four rounds. The more nodes copy
      from each other, the more their answers look like common mistakes.
    - Nodes that have hardly trained may answer alike without copying when the other nodes of their
      model have improved. A person has to decide that, and which of two nodes copied.
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
    """Node ids in ascending order, their models' numbers [N], and their texts' numbers [N, Q].

    Equal texts have equal numbers, for any question. -1 means that the node has no wrong answer to
    the question, or an empty one.
    """

    nodes: list[int]
    models: Ints
    texts: Ints


def _read_answers(answers: Iterable[WrongAnswer]) -> _Table:
    """Assign numbers to nodes, models, questions and normalised texts."""
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
