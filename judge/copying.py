"""Copied answers of a closed round: pairs of nodes that share more wrong answers than chance.

Right answers agree because they are right; a wrong answer can be wrong in many ways, so the same
wrong one on many questions is evidence (G. O. Wesolowsky, "Detecting excessive similarity in
answers on multiple choice exams", Journal of Applied Statistics 27(7), 2000). As in the K index
and the omega family (W. J. van der Linden and L. Sotaridona, Journal of Educational and Behavioral
Statistics 31(3), 2006), the test is conditional on what one of the two answered, and the others
who were wrong on the same question are the witnesses of how common that answer is. Pure.
"""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from judge.forensics import choose_flagged, write_p
from judge.matching import Ints, compare_pairs, find_candidates
from swarm_record.stats import adjust_by_holm

# An accusation weighs more than a remark: with a round every five minutes, honest nodes are flagged
# once in two years at most.
ALPHA = 5e-6


class WrongAnswer(NamedTuple):
    """An answer that was scored as wrong: its question's number, its node's id, model and text.

    `text` is the extracted answer; case and white space do not matter. Any numbers that tell
    questions apart will do, so that several rounds can be looked at as one.
    """

    question: int
    node: int
    model: str
    text: str


@dataclass(frozen=True)
class CopyFinding:
    """Two nodes, `first` < `second`, that share more wrong answers than chance.

    On `matches` of the `both_wrong` questions their answers are the same, where `expected` were
    to be expected; repeats of a shared text are in neither. `p_adjusted` is over all `pairs` of
    the round's nodes; `same_model` tells that both declare the same model.
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
        """Return the finding as an English sentence, for the page of one of the two nodes."""
        among = " even among nodes of their model" if self.same_model else ""
        return (
            f"{self.matches} of {self.both_wrong} wrong answers in common with {other}; "
            f"{self.expected:.1f} expected by chance{among} "
            f"({write_p(self.p_adjusted)} after Holm's adjustment over {self.pairs:,} pairs)"
        )


def find_copies(answers: Iterable[WrongAnswer], *, alpha: float = ALPHA) -> list[CopyFinding]:
    """Return the pairs whose shared wrong answers exceed chance, the clearest first.

    `answers`: all wrong answers of a round, one for each node and question; empty ones are no
    evidence. Under the null hypothesis a node that is wrong on a question gives its partner's
    text with the share of the others who were wrong that gave it: the others are all nodes, or
    those of the model of one of the two where that makes the share larger, so that who copies
    from a node is not paired with its model's innocent rest. The partner itself is among them:
    where they are few the share nears 1, and what everybody answers proves nothing. Of two
    different texts the more popular one's share counts. The number of matches is then
    Poisson-binomial, and Holm's adjustment is over all N(N-1)/2 pairs of the nodes in `answers`,
    looked at or not.

    - Two nodes of one model are tested only if MIN_WITNESSES other nodes of that model, and two
      of different models only if so many others, were wrong in the round: equal weights give
      equal greedy answers, and with fewer there is nothing to compare with.
    - A text that a pair shares on several questions counts once: a model that has collapsed to
      one answer gives it everywhere.
    - Power comes from wrong answers: among 60 nodes, 32 questions show who copied all of another's,
      16 do in some three of four rounds. The larger a ring's part of all nodes, the more its own
      answers look like common mistakes.
    - Nodes that have hardly trained answer alike without copying where their model's other nodes
      have moved on: for a person to tell, as is which of two copied.
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


# ---- the round as a table


@dataclass(frozen=True)
class _Table:
    """Node ids in rising order, their models' numbers [N], and their texts' numbers [N, Q].

    Equal texts have equal numbers, whatever the question; -1 stands where no wrong answer is.
    """

    nodes: list[int]
    models: Ints
    texts: Ints


def _read_answers(answers: Iterable[WrongAnswer]) -> _Table:
    """Number nodes, models, questions and normalised texts."""
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
    model_numbers: dict[str, int] = {}
    numbered = [model_numbers.setdefault(models[node], len(model_numbers)) for node in ids]
    return _Table(nodes=ids, models=np.array(numbered, dtype=np.int64), texts=table)
