"""The answer of a completion is what reasoning-gym extracts, in the child as well."""

import pytest
from reasoning_gym.utils import extract_answer

from swarm_tasks.verifier import Verifier
from tests.tasks.specs import ONE_DIGIT, make_spec, solve_sum

# {} is replaced by the right answer.
TEXTS = [
    "<answer>{}</answer>",
    "<answer> {} </answer>",
    "<answer>\n\n  {}\n</answer>\n",
    "Sure!<answer>{}</answer> I am certain.",
    "<think>7?</think><answer>{}</answer>",
    "<answer>99</answer> no: <answer>{}</answer>",
    "<answer>{}</answer> or <answer>99</answer>",
    "<answer>{}</answer> or <answer>99",
    "<answer><answer>{}</answer></answer>",
    "<answer>{}",
    "{}</answer>",
    "{}",
    "",
    "<answer></answer>",
    "<answer> </answer>",
    "<ANSWER>{}</ANSWER>",
    "< answer>{}</answer>",
    "<answer >{}</answer>",
    "<answer>{}</answer >",
    "<final>{}</final>",
    "\\boxed{{{}}}",
    "＜answer＞{}＜/answer＞",
    "<answer>\u00a0{}\u2003</answer>",
]


@pytest.mark.parametrize("text", TEXTS)
def test_verdict_agrees_with_the_answer_that_reasoning_gym_extracts(
    verifier: Verifier, text: str
) -> None:
    spec = make_spec(config=ONE_DIGIT)
    right = solve_sum(verifier.question(spec))
    text = text.format(right)
    (verdict,) = verifier.score(spec, [text])
    extracted = extract_answer(text)
    assert (verdict.reason == "no_answer") == (extracted is None)
    assert verdict.solved == (extracted == right)
