"""The interface of pycosat 0.6.6 over SymPy's DPLL solver, which needs no C compiler.

A clause is a sequence of nonzero integers: ``3`` is the third variable, ``-3`` its negation (the
DIMACS convention). A solution lists every variable once, with its sign, in ascending order.
"""

from collections.abc import Iterable, Iterator, Sequence

from sympy.assumptions.cnf import EncodedCNF
from sympy.logic.inference import satisfiable

__version__ = "0.6.6+sympy.1"

Clause = Sequence[int]


def itersolve(clauses: Iterable[Clause]) -> Iterator[list[int]]:
    """Yield all solutions, in no particular order. Raises ValueError if a literal is 0."""
    # The solver watches two different literals of each clause, so duplicates must go.
    distinct = [list(dict.fromkeys(clause)) for clause in clauses]
    if not all(map(all, distinct)):
        raise ValueError("0 is not a literal; variables are numbered from 1")
    if not all(distinct):
        return  # An empty clause cannot be satisfied.
    if not distinct:
        yield []
        return
    variables = range(1, 1 + max(abs(literal) for clause in distinct for literal in clause))
    cnf = EncodedCNF(distinct, {variable: variable for variable in variables})
    # Without an algorithm, SymPy would choose pycosat, which is this module.
    for model in satisfiable(cnf, algorithm="dpll2", all_models=True):
        if model:  # SymPy yields False when there is no model.
            yield [variable if model[variable] else -variable for variable in variables]


def solve(clauses: Iterable[Clause]) -> list[int] | str:
    """Return one solution, or the text ``"UNSAT"`` when there is none.

    Raises ValueError if a literal is 0.
    """
    return next(itersolve(clauses), "UNSAT")
