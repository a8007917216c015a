"""The verifier's child with a verifier that answers can break: run in its place by tests."""

import os
import time

import tests.tasks.arithmetic_alone  # noqa: F401  # before reasoning-gym
from swarm_protocol.messages import Config
from swarm_tasks.answers import AnswerRules
from swarm_tasks.child import __main__ as child
from swarm_tasks.child import generators
from tests.tasks.specs import DIES, HANGS, WAIT_S

score_as_it_is = generators.Task.score_text
open_as_it_is = generators.open_task


def hang() -> None:
    """Never return."""
    while True:
        time.process_time()


def open_task(dataset: str, config: Config, *, seed: int, index: int) -> generators.Task:
    """Hang or die as the index says, else make the task."""
    if index == HANGS:
        hang()
    if index == DIES:
        os._exit(9)
    return open_as_it_is(dataset, config, seed=seed, index=index)


def score_text(self: generators.Task, text: str, *, rules: AnswerRules) -> float:
    """Hang, die, wait or evaluate as the text says; score it as the real one does if it can."""
    if "please hang" in text:
        hang()
    if "please die" in text:
        os._exit(9)
    if "please wait" in text:
        time.sleep(WAIT_S)
    if "please evaluate" in text:
        eval(text.split("<answer>")[1].split("</answer>")[0])
    return score_as_it_is(self, text, rules=rules)


if __name__ == "__main__":
    generators.Task.score_text = score_text  # type: ignore[method-assign]
    generators.open_task = open_task
    child.main()
