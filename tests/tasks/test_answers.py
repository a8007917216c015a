"""Finding the answer in a completion, and the time that it may take."""

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
@example(text="<answer>9</answer> no: <answer>4</answer>")
@example(text="<answer>4</answer> or <answer>9")
@example(text="<answer> </answer>")
@example(text="<ANSWER>4</ANSWER>")
@example(text="< answer>4</answer>")
@example(text="<answer>4</answer >")
@example(text="＜answer＞4＜/answer＞")
@example(text="<answer>\u00a04\u2003</answer>")
def test_find_answer_agrees_with_reasoning_gym(text: str) -> None:
    assert find_answer(text) == extract_answer(text)


def test_unclosed_tags_do_not_slow_down_the_search() -> None:
    """The regular expression of reasoning-gym takes half a second for this text."""
    text = ("<answer> " * MAX_COMPLETION_CHARS)[:MAX_COMPLETION_CHARS]
    begin = process_time()
    assert find_answer(text) is None
    assert process_time() - begin < 0.05


# ---- wrappings


def unwrapped(answer: str) -> list[str]:
    return list_answers(f"<answer>{answer}</answer>", rules=AnswerRules.UNWRAPPED)


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_content_of_a_wrapping_is_listed_as_an_answer(wrapping: str) -> None:
    assert unwrapped(wrapping.format("42"))[-1] == "42"


@given(text=st.lists(st.sampled_from([*PARTS, "$", "**", '"', ".", "Answer: "])).map("".join))
def test_unmodified_answer_is_listed_first(text: str) -> None:
    """So answers that are right under the exact rules stay right."""
    exact = list_answers(text, rules=AnswerRules.EXACT)
    if exact:
        assert list_answers(text, rules=AnswerRules.UNWRAPPED)[0] == exact[0]


@given(text=st.lists(st.sampled_from([*PARTS, "$", "**", '"', ".", "Answer: "])).map("".join))
def test_each_further_answer_is_a_part_of_the_previous_one(text: str) -> None:
    """So a completion cannot give two different answers and have both scored."""
    answers = list_answers(text, rules=AnswerRules.UNWRAPPED)
    assert len(answers) <= 1 + MAX_WRAPPINGS
    for outer, inner in pairwise(answers):
        assert inner in outer
        assert len(inner) < len(outer)


def test_exact_rules_unwrap_nothing() -> None:
    assert list_answers("<answer>$42$.</answer>", rules=AnswerRules.EXACT) == ["$42$."]


def test_upper_case_tags_count_only_without_lower_case_tags() -> None:
    capital, small = "<ANSWER>1</Answer>", "<answer>2</answer>"
    assert list_answers(capital, rules=AnswerRules.UNWRAPPED) == ["1"]
    assert list_answers(small + capital, rules=AnswerRules.UNWRAPPED) == ["2"]
    assert list_answers(capital, rules=AnswerRules.EXACT) == []


@pytest.mark.parametrize("answer", ["", "$", "**", "``", "```", '"', ".", "\\boxed{}", "Answer:"])
def test_empty_wrapping_contains_no_answer(answer: str) -> None:
    assert unwrapped(answer) == [answer]


def test_info_string_is_the_answer_only_if_the_code_block_is_empty() -> None:
    assert unwrapped("```42\n```")[-1] == "42"
    assert unwrapped("```python\n42\n```")[-1] == "42"


@pytest.mark.parametrize("part", ["<answer> ", "<Answer>", "*", "$ ", "answer:", ".", "`", "_ "])
def test_repeated_markup_is_parsed_in_little_time(part: str) -> None:
    text = (part * MAX_COMPLETION_CHARS)[: MAX_COMPLETION_CHARS - 17]
    begin = process_time()
    for whole in (text, f"<answer>{text}</answer>"):
        list_answers(whole, rules=AnswerRules.UNWRAPPED)
    assert process_time() - begin < 0.05


def test_later_version_of_the_rules_is_read_as_the_newest_known() -> None:
    assert find_rules("answers-1") is AnswerRules.EXACT
    assert find_rules("answers-99") is NEWEST_RULES
