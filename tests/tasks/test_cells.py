"""Outcomes become scores, and their cells can be added and subtracted."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_tasks.cells import Cells, add_cells, macro_score, subtract_cells, summarize_outcomes

datasets = st.sampled_from(["chain_sum", "gcd", "products", "spell_backward", "lcm"])
outcomes = st.lists(st.tuples(datasets, st.sampled_from([True, False, None])), max_size=60)


def test_all_datasets_have_the_same_weight() -> None:
    summary = summarize_outcomes([("gcd", True), *[("chain_sum", False)] * 9])
    assert summary.score == 0.5
    assert (summary.correct, summary.n) == (1, 10)


def test_ungraded_question_is_left_out() -> None:
    summary = summarize_outcomes([("gcd", True), ("gcd", None), ("lcm", None)])
    assert summary.cells == {"gcd": (1, 1)}
    assert (summary.correct, summary.n, summary.score) == (1, 1, 1.0)


def test_unanswered_question_counts_as_not_solved() -> None:
    assert summarize_outcomes([("gcd", True), ("gcd", False)]).score == 0.5


@pytest.mark.parametrize("outcome", [[], [("gcd", None)]])
def test_score_is_none_without_a_graded_question(outcome: list[tuple[str, None]]) -> None:
    summary = summarize_outcomes(outcome)
    assert (summary.cells, summary.correct, summary.n, summary.score) == ({}, 0, 0, None)


def test_score_is_the_same_float_for_every_order_of_datasets() -> None:
    cells = {"gcd": (1, 10), "lcm": (2, 10), "products": (3, 10)}
    scores = {macro_score({name: cells[name] for name in names}) for names in permutations(cells)}
    assert len(scores) == 1


@given(outcomes, outcomes)
def test_cells_of_two_rounds_add_up_to_the_cells_of_both(
    one: list[tuple[str, bool | None]], other: list[tuple[str, bool | None]]
) -> None:
    assert (
        add_cells(summarize_outcomes(one).cells, summarize_outcomes(other).cells)
        == summarize_outcomes([*one, *other]).cells
    )


@pytest.mark.slow
@given(outcomes, outcomes)
def test_added_cells_can_be_subtracted_again(
    one: list[tuple[str, bool | None]], other: list[tuple[str, bool | None]]
) -> None:
    both = add_cells(summarize_outcomes(one).cells, summarize_outcomes(other).cells)
    assert subtract_cells(both, summarize_outcomes(other).cells) == summarize_outcomes(one).cells


@pytest.mark.parametrize("part", [{"gcd": (2, 2)}, {"gcd": (0, 2)}, {"lcm": (0, 1)}])
def test_cells_that_were_not_added_cannot_be_subtracted(part: Cells) -> None:
    with pytest.raises(ValueError, match="right answers"):
        subtract_cells({"gcd": (1, 2)}, part)


def test_dataset_without_questions_does_not_affect_the_score() -> None:
    assert macro_score({"gcd": (1, 1), "lcm": (0, 0)}) == 1.0
