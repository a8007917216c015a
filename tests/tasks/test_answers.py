"""What of a completion counts as its answer, and how long finding it may take."""

from time import process_time

from hypothesis import example, given
from hypothesis import strategies as st
from reasoning_gym.utils import extract_answer

from swarm_protocol.messages import MAX_COMPLETION_CHARS
from swarm_tasks.answers import find_answer

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
