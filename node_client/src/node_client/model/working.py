"""Worked solutions to sums, as somebody writes them who makes slips and notices most of them.

A sum is worked out from left to right by its partial sums: `12 + 30 = 42, 42 + 7 = 49`. A step goes
wrong now and then. Then its writer mostly hesitates ("wait") or checks it ("check again") and puts
it right, and sometimes goes on with the wrong number. Right steps are doubted too, but seldom, and
a sum of three terms is sometimes done once more in another order. So the words of
`learning.reflection` stand in the text where they help, and a reader can learn when to write them.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Manner:
    """How somebody writes: the share of sums or steps to which each habit applies.

    `worked` sums have a worked solution, the others an answer alone. Of all steps `slips` go wrong;
    of these `noticed` are put right at once. Of the right ones `doubted` are done again. Of worked
    sums of three terms `another_way` are done in another order too.
    """

    worked: float = 0.7
    slips: float = 0.08
    noticed: float = 0.8
    doubted: float = 0.04
    another_way: float = 0.05


def work_through(question: str, manner: Manner, *, chance: random.Random) -> tuple[str, int]:
    """Return the worked solution of a sum, empty or ending in `, `, and the answer that it gives.

    Raises ValueError for a question without a sum.
    """
    terms = read_terms(question)
    if chance.random() >= manner.worked:
        return "", sum(terms)
    written, result = _write_steps(terms, manner, chance)
    if len(terms) == 3 and chance.random() < manner.another_way:
        again, result = _write_steps([terms[2], *terms[:2]], manner, chance)
        written += ["another way: " + again[0], *again[1:]]
    return "".join(f"{step}, " for step in written), result


def read_terms(question: str) -> list[int]:
    """Return the terms of a sum, negative where they are taken away. Raises ValueError."""
    found = re.search(r"-?\d+(?: [+-] \d+)+(?= =)", question)
    if found is None:
        raise ValueError(f"no sum in {question!r}")
    return [int(sign + digits) for sign, digits in re.findall(r"([+-]?) ?(\d+)", found[0])]


def _write_steps(
    terms: Sequence[int], manner: Manner, chance: random.Random
) -> tuple[list[str], int]:
    """Return the steps that add terms up, as they are written, and the result."""
    written: list[str] = []
    result = terms[0]
    for value in terms[1:]:
        start = f"{result} {'-' if value < 0 else '+'} {abs(value)} = "
        right = result + value
        slipped = chance.random() < manner.slips
        result = right + chance.choice((-10, -2, -1, 1, 2, 10)) if slipped else right
        written.append(f"{start}{result}")
        if chance.random() < (manner.noticed if slipped else manner.doubted):
            word = chance.choice(("wait, ", "check again: "))
            written.append(f"{word}{start}{right}")
            result = right
    return written, result
