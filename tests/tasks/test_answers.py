"""What of a completion counts as its answer, and how long finding it may take."""

from itertools import pairwise
from time import process_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from reasoning_gym.utils import extract_answer

from swarm_protocol.messages import MAX_COMPLETION_CHARS
from swarm_tasks.answers import (
    MAX_WRAPPINGS,
    NEWEST_RULES,
    AnswerRules,
    find_answer,
    find_rules,
    list_answers,
)
from swarm_tasks.gate.answers import WRAPPINGS

PARTS = ("<answer>", "</answer>", "<ANSWER>", "<", ">", "/", " ", "\n", "\u00a0", "\x1c", "4", "x")


@given(text=st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
@example(text="<answer>\n\n 4 </answer>")
@example(text="<answer><answer>4</answer></answer>")
def test_the_answer_is_what_reasoning_gym_extracts(text: str) -> None:
    assert find_answer(text) == extract_answer(text)


def test_tags_that_are_never_closed_cost_next_to_nothing() -> None:
    """The library's regular expression takes half a second for this text."""
    text = ("<answer> " * MAX_COMPLETION_CHARS)[:MAX_COMPLETION_CHARS]
    begin = process_time()
    assert find_answer(text) is None
    assert process_time() - begin < 0.05


# ---- wrappings


def unwrapped(answer: str) -> list[str]:
    return list_answers(f"<answer>{answer}</answer>", rules=AnswerRules.UNWRAPPED)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_what_a_wrapping_holds_is_an_answer_too(wrapping: str) -> None:
    assert unwrapped(wrapping.format("42"))[-1] == "42"


@given(text=st.lists(st.sampled_from([*PARTS, "$", "**", '"', ".", "Answer: "])).map("".join))
def test_the_answer_as_it_stands_comes_first(text: str) -> None:
    """So nothing that was right becomes wrong."""
    exact = list_answers(text, rules=AnswerRules.EXACT)
    if exact:
        assert list_answers(text, rules=AnswerRules.UNWRAPPED)[0] == exact[0]


@given(text=st.lists(st.sampled_from([*PARTS, "$", "**", '"', ".", "Answer: "])).map("".join))
def test_every_other_answer_is_a_part_of_the_one_before(text: str) -> None:
    """So nobody names two answers and has both looked at."""
    answers = list_answers(text, rules=AnswerRules.UNWRAPPED)
    assert len(answers) <= 1 + MAX_WRAPPINGS
    for outer, inner in pairwise(answers):
        assert inner in outer
        assert len(inner) < len(outer)


def test_to_the_letter_nothing_is_unwrapped() -> None:
    assert list_answers("<answer>$42$.</answer>", rules=AnswerRules.EXACT) == ["$42$."]


def test_tags_in_capital_letters_count_where_there_are_no_others() -> None:
    capital, small = "<ANSWER>1</Answer>", "<answer>2</answer>"
    assert list_answers(capital, rules=AnswerRules.UNWRAPPED) == ["1"]
    assert list_answers(small + capital, rules=AnswerRules.UNWRAPPED) == ["2"]
    assert list_answers(capital, rules=AnswerRules.EXACT) == []


@pytest.mark.parametrize("answer", ["", "$", "**", "``", "```", '"', ".", "\\boxed{}", "Answer:"])
def test_an_empty_wrapping_holds_no_answer(answer: str) -> None:
    assert unwrapped(answer) == [answer]


def test_code_that_could_be_a_language_is_an_answer() -> None:
    assert unwrapped("```42\n```")[-1] == "42"
    assert unwrapped("```python\n42\n```")[-1] == "42"


@pytest.mark.parametrize("part", ["<answer> ", "<Answer>", "*", "$ ", "answer:", ".", "`", "_ "])
def test_no_text_takes_long_to_read(part: str) -> None:
    text = (part * MAX_COMPLETION_CHARS)[: MAX_COMPLETION_CHARS - 17]
    begin = process_time()
    for whole in (text, f"<answer>{text}</answer>"):
        list_answers(whole, rules=AnswerRules.UNWRAPPED)
    assert process_time() - begin < 0.05


def test_rules_of_a_later_version_are_read_as_the_newest_known() -> None:
    assert find_rules("answers-1") is AnswerRules.EXACT
    assert find_rules("answers-99") is NEWEST_RULES
