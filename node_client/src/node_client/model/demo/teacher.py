"""Right answers to the starter tasks, and worked solutions of sums, some with slips.

The verifier tells whether an answer is right but not what the right answer is, so this module
calculates the right answers for the warm-up of the demo bases.

A sum is worked out from left to right by its partial sums: `12 + 30 = 42, 42 + 7 = 49`. Some steps
are wrong. Most wrong steps are then corrected, after a hesitation ("wait") or a check ("check
again"); the other wrong results are used in the next step. A few right steps are repeated too, and
a sum of three terms is sometimes computed again in another order. So the phrases of
`learning.reflection` appear where they help, and a model can learn when to write them.
"""

import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


def _add(question: str) -> str:
    first, sign, second = re.search(r"(\d+) ([+-]) (\d+) =", question).groups()  # type: ignore[union-attr]
    return str(int(first) + int(sign + second))


def _multiply(question: str) -> str:
    return str(math.prod(_numbers(question)))


def _find_gcd(question: str) -> str:
    return str(math.gcd(*_numbers(question)))


def _spell_backward(question: str) -> str:
    return question.rsplit(": ", 1)[1][::-1]


def _numbers(question: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", question)]


TEACHERS: Mapping[str, Callable[[str], str]] = {
    "chain_sum": _add,
    "products": _multiply,
    "gcd": _find_gcd,
    "spell_backward": _spell_backward,
}


def work_out(dataset: str, question: str) -> str:
    """Return the right answer to a question. Raises KeyError for a dataset not in TEACHERS."""
    return TEACHERS[dataset](question)


@dataclass(frozen=True)
class WritingHabits:
    """The probability of each habit in the written solution of a sum.

    - `worked`: the solution has the steps, not only the answer.
    - `slips`: a step has a wrong result.
    - `noticed`: a wrong step is corrected at once.
    - `doubted`: a right step is repeated.
    - `another_way`: a worked sum of three terms is also computed in another order.
    """

    worked: float = 0.7
    slips: float = 0.08
    noticed: float = 0.8
    doubted: float = 0.04
    another_way: float = 0.05


def work_through(question: str, habits: WritingHabits, *, rng: random.Random) -> tuple[str, int]:
    """Return the worked solution of a sum, and the answer that it leads to, right or wrong.

    The solution ends in `, `. With probability 1 - `habits.worked`, it is empty and the answer
    is right. Raises ValueError for a question without a sum.
    """
    terms = read_terms(question)
    if rng.random() >= habits.worked:
        return "", sum(terms)
    written, result = _write_steps(terms, habits, rng)
    if len(terms) == 3 and rng.random() < habits.another_way:
        again, result = _write_steps([terms[2], *terms[:2]], habits, rng)
        written += ["another way: " + again[0], *again[1:]]
    return "".join(f"{step}, " for step in written), result


def read_terms(question: str) -> list[int]:
    """Return the terms of a sum, negative after a minus sign.

    Raises ValueError for a question without a sum.
    """
    found = re.search(r"-?\d+(?: [+-] \d+)+(?= =)", question)
    if found is None:
        raise ValueError(f"no sum in {question!r}")
    return [int(sign + digits) for sign, digits in re.findall(r"([+-]?) ?(\d+)", found[0])]


def _write_steps(
    terms: Sequence[int], habits: WritingHabits, rng: random.Random
) -> tuple[list[str], int]:
    """Return the written steps that add the terms up, and the result."""
    written: list[str] = []
    result = terms[0]
    for value in terms[1:]:
        start = f"{result} {'-' if value < 0 else '+'} {abs(value)} = "
        right = result + value
        slipped = rng.random() < habits.slips
        result = right + rng.choice((-10, -2, -1, 1, 2, 10)) if slipped else right
        written.append(f"{start}{result}")
        if rng.random() < (habits.noticed if slipped else habits.doubted):
            word = rng.choice(("wait, ", "check again: "))
            written.append(f"{word}{start}{right}")
            result = right
    return written, result
