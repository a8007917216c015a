"""The dataset propositional_logic, with right answers and a strict verifier.

The library's entries hold no right answers, and its verifier accepts a repeated premise. Here a
conclusion counts if it follows from all premises together and from none of them alone. A tautology,
a premise, and anything weaker than one premise do not count. As in the library, conclusions have
one or two variables. Conjunctions and equivalences do not count, because otherwise any two premises
joined by ∧ could be a conclusion.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import and_
from random import Random
from typing import Any

from reasoning_gym.logic.propositional_logic import (
    Expression,
    Operator,
    PropositionalLogicDataset,
)

from swarm_tasks.keyspace import INDEX_END

RULE = (
    "\nThe conclusion must follow from the statements together, and from none of them alone."
    " State a variable, a negated variable, or two of these joined by ∨ or →."
)
# A quarter of the default entries have a conclusion. With two variables and ten statements, which
# mostly contradict each other, only one entry in two hundred has one. An attempt takes up to 4 ms.
_ATTEMPTS = 500
_ANSWER = re.compile(r"(¬?[A-Z])(?:([∨→])(¬?[A-Z]))?")


class PropositionalLogic(PropositionalLogicDataset):
    """The library's dataset, limited to entries whose premises have a conclusion.

    `list_conclusions` defines a conclusion. Each entry's metadata lists all its conclusions.

    If the entry of an index has no such conclusion, the entry of that index plus 2**31 is tried,
    then plus 2 * 2**31, and so on. These sums lie outside the range of indices, so no two indices
    share an entry.
    """

    category = "logic"

    def __getitem__(self, idx: int) -> dict[str, Any]:
        """Try library entries for an index, and return the first that has a conclusion.

        Raises ValueError if none of _ATTEMPTS entries has a conclusion.
        """
        for attempt in range(_ATTEMPTS):
            entry: dict[str, Any] = super().__getitem__(idx + attempt * INDEX_END)
            metadata = entry["metadata"]
            conclusions = list_conclusions(metadata["premises"], metadata["variables"])
            if conclusions:
                entry["question"] += RULE
                entry["answer"] = metadata["example_answer"] = conclusions[0]
                metadata["conclusions"] = conclusions
                return entry
        raise ValueError(
            f"in {_ATTEMPTS} sets of premises no conclusion takes two of them: allow more"
            " variables, fewer statements or more complex ones"
        )

    def _find_valid_conclusion(
        self, rng: Random, premises: list[Expression], variables: list[str]
    ) -> Expression:
        """Return a premise in place of a conclusion, which `__getitem__` finds later.

        This replaces the library's search for a conclusion, which may take a second.
        """
        return premises[0]

    def score_answer(self, answer: str, entry: dict[str, Any]) -> float:
        """Return 1 if the answer is a conclusion of the entry, else 0.

        An implication "a implies b" is read as "not a, or b".
        """
        return float(_read_clause(answer) in entry["metadata"]["conclusions"])


def list_conclusions(premises: Iterable[str], variables: Sequence[str]) -> list[str]:
    """Return the conclusions that follow from all premises together, but from none of them alone.

    Literals come first, then disjunctions of two literals; there are no other forms. The list is
    empty if the premises contradict each other, because then everything would follow.
    """
    truths, everything = _literal_truths(tuple(variables))
    facts = [_truth(Expression.from_string(premise), truths, everything) for premise in premises]
    together = functools.reduce(and_, facts)
    if not together:
        return []
    pairs = combinations(truths.items(), 2)
    clauses = truths | {_write_clause(a, b): first | second for (a, first), (b, second) in pairs}
    return [
        clause
        for clause, truth in clauses.items()
        if not together & ~truth and all(fact & ~truth for fact in facts)
    ]


@functools.lru_cache(maxsize=64)
def _literal_truths(variables: tuple[str, ...]) -> tuple[dict[str, int], int]:
    """Return the truth-table column of each variable and its negation, and the column of all ones.

    A column is a number whose bit *r* is the value in row *r* of the 2ⁿ rows.
    """
    rows = 2 ** len(variables)
    everything = (1 << rows) - 1
    truths: dict[str, int] = {}
    for place, variable in enumerate(variables):
        truth = sum(1 << row for row in range(rows) if row >> place & 1)
        truths |= {variable: truth, f"¬{variable}": everything ^ truth}
    return truths, everything


def _truth(expression: Any, truths: dict[str, int], everything: int) -> int:
    if expression.operator is None:
        return truths[expression.left]
    left = _truth(expression.left, truths, everything)
    if expression.operator is Operator.NOT:
        return everything ^ left
    right = _truth(expression.right, truths, everything)
    match expression.operator:
        case Operator.AND:
            return left & right
        case Operator.OR:
            return left | right
        case Operator.IMPLIES:
            return everything ^ left | right
        case _:
            return everything ^ left ^ right


def _read_clause(answer: str) -> str | None:
    """Return the answer as `list_conclusions` writes it; None if it is not of the form in RULE."""
    text = "".join(answer.split())
    if text[:1] + text[-1:] == "()":
        text = text[1:-1]
    found = _ANSWER.fullmatch(text)
    if found is None:
        return None
    first, operator, second = found.groups()
    if second is None:
        return first
    return _write_clause(_negate(first) if operator == Operator.IMPLIES else first, second)


def _negate(literal: str) -> str:
    return literal[1:] if literal.startswith("¬") else f"¬{literal}"


def _write_clause(first: str, second: str) -> str:
    """Return the disjunction of two literals, in the order of their variables."""
    if first == second:
        return first
    return " ∨ ".join(sorted((first, second), key=lambda literal: literal[-1]))
