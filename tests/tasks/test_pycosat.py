"""The replacement for pycosat finds the models that pycosat finds."""

import json
import os
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import pycosat
import pytest
from hypothesis import given
from hypothesis import strategies as st

literals = st.integers(1, 5).flatmap(lambda variable: st.sampled_from([variable, -variable]))
formulas = st.lists(st.lists(literals, max_size=4), max_size=12)

# Draws puzzles of three sizes and prints them with the version of the pycosat that made them.
DRAW_PUZZLES = """
import json, pycosat, reasoning_gym
sizes = [{}, {"num_people": 3, "num_characteristics": 5}, {"num_characteristics": 5}]
data = [reasoning_gym.create_dataset("zebra_puzzles", seed=5, size=3, **size) for size in sizes]
print(json.dumps([pycosat.__version__, [list(puzzles) for puzzles in data]]))
"""


def models_by_trial(clauses: list[list[int]]) -> set[tuple[int, ...]]:
    last = max((abs(literal) for clause in clauses for literal in clause), default=0)
    assignments = product(*[(variable, -variable) for variable in range(1, last + 1)])
    return {
        assignment
        for assignment in assignments
        if all(set(clause) & set(assignment) for clause in clauses)
    }


@pytest.mark.slow
@given(formulas)
def test_every_model_is_found_once(clauses: list[list[int]]) -> None:
    found = [tuple(model) for model in pycosat.itersolve(clauses)]
    assert len(found) == len(set(found))
    assert set(found) == models_by_trial(clauses)


def test_contradiction_is_unsatisfiable() -> None:
    assert pycosat.solve([[1], [-1]]) == "UNSAT"


def test_zero_is_refused_as_a_literal() -> None:
    with pytest.raises(ValueError, match="0 is not a literal"):
        pycosat.solve([[1, 0]])


def draw_puzzles(folder: Path) -> tuple[str, list[object]]:
    """Return the version of the pycosat that is found first, and the puzzles drawn with it."""
    search_path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    drawn = subprocess.run(
        [sys.executable, "-c", DRAW_PUZZLES],
        env=os.environ | {"PYTHONPATH": search_path},
        capture_output=True,
        check=True,
    )
    version, puzzles = json.loads(drawn.stdout)
    return version, puzzles


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cc") is None, reason="pycosat itself needs a C compiler")
def test_puzzles_are_those_of_the_compiled_pycosat(tmp_path: Path) -> None:
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", str(tmp_path), "pycosat===0.6.6"], check=True)
    compiled = draw_puzzles(tmp_path)
    stand_in = draw_puzzles(tmp_path / "nothing")
    assert (compiled[0], stand_in[0]) == ("0.6.6", pycosat.__version__)
    assert compiled[1] == stand_in[1]
