"""Scoring in the datasets with a verifier of this project; no answer is executed."""

from itertools import combinations
from statistics import fmean
from typing import Any

import pytest
from reasoning_gym.logic.propositional_logic import (
    Expression,
    PropositionalLogicConfig,
    PropositionalLogicDataset,
)

from swarm_tasks.child.generators import open_dataset
from swarm_tasks.child.own import OWN_DATASETS
from swarm_tasks.child.own.propositional_logic import RULE, list_conclusions
from swarm_tasks.gate.answers import NEVER_RIGHT
from swarm_tasks.gate.probes import sample_indices
from swarm_tasks.keyspace import INDEX_END
from swarm_tasks.verifier import Verifier
from tests.tasks.specs import SEED, answered, make_spec

MATRIX = open_dataset("binary_matrix", {}, seed=SEED)
LOGIC = open_dataset("propositional_logic", {}, seed=SEED)
LOGIC_ENTRIES = [LOGIC[index] for index in sample_indices(150)]
LONG = (
    "(" * 8000 + "P" + ")" * 8000,
    "¬" * 16_000 + "P",
    "P ∨ " * 4000 + "Q",
    "P→" * 8000,
    "1 " * 8000,
)


@pytest.mark.parametrize("dataset", OWN_DATASETS)
def test_reference_answer_is_right_in_the_child(verifier: Verifier, dataset: str) -> None:
    entry = open_dataset(dataset, {}, seed=SEED)[7]
    spec = make_spec(dataset, index=7)
    assert verifier.question(spec) == entry["question"]
    right, wrong = verifier.score(spec, [answered(entry["answer"]), answered("P ∨ ¬P")])
    assert (right.reason, wrong.reason) == ("right", "wrong")


@pytest.mark.parametrize("dataset", OWN_DATASETS)
def test_hostile_or_long_text_scores_zero(dataset: str) -> None:
    scorer = open_dataset(dataset, {}, seed=SEED)
    entry = scorer[7]
    assert {scorer.score_answer(text, entry) for text in (*NEVER_RIGHT, *LONG)} == {0.0}


# ---- binary_matrix


def matrix_score(answer: str) -> float:
    score: float = MATRIX.score_answer(answer, {"answer": "0 1 2\n1 0 1\n0 0 1"})
    return score


@pytest.mark.parametrize(
    "answer", ["0 1 2\n1 0 1\n0 0 1", "0  1 2 \n\t1 0 1\n0 0 1\n", "0 1 2\r\n\r\n1 0 1\r\n0 0 1"]
)
def test_matrix_is_right_with_any_spacing(answer: str) -> None:
    assert matrix_score(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "0 1 2\n1 0 1\n0 0 2",
        "0 1 2\n1 0 1",
        "0 1 2\n1 0 1\n0 0 1\n0",
        "0 1 2 1 0 1 0 0 1",
        "012\n101\n001",
        "0 1 2\n1 0 1\n0 0 1.0",
        "0 1 2\n1 0 1\n0 0 ١",
        "[[0, 1, 2], [1, 0, 1], [0, 0, 1]]",
        "The matrix is\n0 1 2\n1 0 1\n0 0 1",
    ],
)
def test_matrix_with_other_numbers_shape_or_more_text_is_wrong(answer: str) -> None:
    assert matrix_score(answer) == 0.0


# ---- propositional_logic


@pytest.mark.parametrize(
    ("premises", "conclusions"),
    [
        (["P", "(P → Q)"], ["Q"]),
        (["(P ∨ Q)", "¬P"], ["Q"]),
        (["(P ↔ Q)", "¬¬Q"], ["P"]),
        (["¬(P ∧ Q)", "Q"], ["¬P"]),
        (["(P → Q)", "(Q → R)"], ["¬P ∨ R"]),
        (["(P ∨ Q)", "(P → R)", "(Q → R)"], ["R", "P ∨ R", "Q ∨ R"]),
    ],
)
def test_conclusion_needs_two_premises(premises: list[str], conclusions: list[str]) -> None:
    variables = sorted({*"".join(premises)} & {*"PQR"})
    assert list_conclusions(premises, variables) == conclusions


@pytest.mark.parametrize(
    "premises",
    [["P", "Q"], ["(P ∧ Q)", "P"], ["P", "(P ∨ Q)"], ["(P → Q)"], ["P", "¬P"], ["(P ∧ ¬P)", "Q"]],
)
def test_single_premise_or_contradiction_gives_no_conclusion(premises: list[str]) -> None:
    assert list_conclusions(premises, ["P", "Q"]) == []


def test_conclusions_are_valid_by_the_truth_tables_of_the_library() -> None:
    for entry in LOGIC_ENTRIES[:40]:
        premises = [Expression.from_string(text) for text in entry["metadata"]["premises"]]
        for text in entry["metadata"]["conclusions"]:
            conclusion = Expression.from_string(text)
            assert LOGIC._is_valid_conclusion(premises, conclusion)
            alone = [LOGIC._is_valid_conclusion([premise], conclusion) for premise in premises]
            assert not any(alone)


def logic_score(answer: str) -> float:
    score: float = LOGIC.score_answer(answer, {"metadata": {"conclusions": ["R", "¬P ∨ Q"]}})
    return score


@pytest.mark.parametrize(
    "answer",
    ["R", "(R)", "R ∨ R", "¬R → R", "¬P ∨ Q", "¬P∨Q", "(¬P ∨ Q)", "Q ∨ ¬P", "P → Q", "¬Q → ¬P"],
)
def test_conclusion_is_right_in_every_accepted_form(answer: str) -> None:
    assert logic_score(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        *("", "¬R", "Q → P", "P ∨ Q", "R ∨ ¬R", "r", "R.", "R S", "(R", "(R]", "¬", "P →", "∨ Q"),
        *("R ∧ R", "P ↔ Q", "P -> Q", "¬P v Q", "not P ∨ Q", "¬P ∨ Q ∨ Q", "R, ¬P ∨ Q", "Ｒ"),
    ],
)
def test_other_statement_or_other_form_is_wrong(answer: str) -> None:
    assert logic_score(answer) == 0.0


def test_every_reference_answer_is_right() -> None:
    assert {LOGIC.score_answer(entry["answer"], entry) for entry in LOGIC_ENTRIES} == {1.0}


def lazy_answers(entry: dict[str, Any]) -> list[str]:
    """Return answers that need no inference: premises, alone and joined, and constant formulas."""
    premises = entry["metadata"]["premises"]
    joined = [f" {sign} ".join(premises) for sign in "∧∨→"]
    pairs = [f"{a} {sign} {b}" for a, b in combinations(premises, 2) for sign in "∧∨→"]
    return [*premises, *joined, *pairs, "P ∨ ¬P", "P → P", "P ∧ ¬P"]


def test_copied_premises_and_tautologies_are_wrong() -> None:
    for entry in LOGIC_ENTRIES:
        assert {LOGIC.score_answer(text, entry) for text in lazy_answers(entry)} == {0.0}


def test_no_constant_answer_is_right_in_more_than_30_percent_of_entries() -> None:
    literals = [*"PQRS", *(f"¬{variable}" for variable in "PQRS")]
    constants = [*literals, *(f"{a} ∨ {b}" for a, b in combinations(literals, 2))]
    means = [
        fmean(LOGIC.score_answer(text, entry) for entry in LOGIC_ENTRIES) for text in constants
    ]
    assert 0.1 < max(means) < 0.3


def test_question_is_that_of_the_library_followed_by_the_rule() -> None:
    library = PropositionalLogicDataset(PropositionalLogicConfig(seed=SEED))
    for entry in LOGIC_ENTRIES[:20]:
        source = library[entry["metadata"]["source_index"]]
        assert entry["question"] == source["question"] + RULE


def test_index_without_a_conclusion_uses_the_entry_2_to_the_31_further_on() -> None:
    indices = sample_indices(150)
    sources = [entry["metadata"]["source_index"] for entry in LOGIC_ENTRIES]
    assert [source % INDEX_END for source in sources] == indices
    assert 0.15 < fmean(map(int.__eq__, sources, indices)) < 0.3


def test_premises_without_any_conclusion_are_refused() -> None:
    lone_variables = open_dataset("propositional_logic", {"max_complexity": 1}, seed=SEED)
    with pytest.raises(ValueError, match="allow more variables, fewer statements"):
        lone_variables[0]
