"""Wrapped answers and junk answers for every allowed dataset."""

import pytest

from swarm_tasks.allowlist import allowed_datasets
from swarm_tasks.answers import AnswerRules
from swarm_tasks.child.generators import Task, open_task
from swarm_tasks.gate.answers import NEVER_RIGHT, WRAPPINGS
from swarm_tasks.step_board import SOLVED
from tests.tasks.specs import SEED

pytestmark = pytest.mark.slow

INDICES = (17, 2**30 + 5)


def open_tasks(dataset: str) -> list[Task]:
    return [open_task(dataset, {}, seed=SEED, index=index) for index in INDICES]


def is_right(task: Task, text: str, rules: AnswerRules) -> bool:
    try:
        return SOLVED <= task.score_text(text, rules=rules) <= 1
    except Exception:  # noqa: BLE001 - a verifier may raise anything: the answer is not right
        return False


@pytest.mark.parametrize("dataset", allowed_datasets())
def test_right_answer_is_right_in_every_wrapping(dataset: str) -> None:
    for task in open_tasks(dataset):
        for wrapping in WRAPPINGS:
            answer = wrapping.format(task.right_answer)
            for text in (f"<answer>{answer}</answer>", f"<Answer>{answer}</ANSWER>"):
                assert is_right(task, text, AnswerRules.UNWRAPPED), text


@pytest.mark.parametrize("dataset", allowed_datasets())
def test_unwrapping_makes_no_junk_right(dataset: str) -> None:
    assert len(set(NEVER_RIGHT)) >= 98
    for task in open_tasks(dataset):
        for junk in NEVER_RIGHT:
            text = f"<answer>{junk}</answer>"
            if is_right(task, text, AnswerRules.UNWRAPPED):
                assert is_right(task, text, AnswerRules.EXACT), text
