"""The verifier's child with a verifier that answers can break; tests run it instead."""

import os
import time

import tests.tasks.arithmetic_alone  # noqa: F401  # before reasoning-gym
from swarm_protocol.messages import Config
from swarm_tasks.answers import AnswerRules
from swarm_tasks.child import __main__ as child
from swarm_tasks.child import generators
from tests.tasks.specs import DIES, HANGS, WAIT_S

real_score_text = generators.Task.score_text
real_open_task = generators.open_task


def hang() -> None:
    """Never return."""
    while True:
        time.process_time()


def open_task(dataset: str, config: Config, *, seed: int, index: int) -> generators.Task:
    """Hang or die at the two special indices, else open the task."""
    if index == HANGS:
        hang()
    if index == DIES:
        os._exit(9)
    return real_open_task(dataset, config, seed=seed, index=index)


def score_text(self: generators.Task, text: str, *, rules: AnswerRules) -> float:
    """Hang, die, wait or evaluate if the text requests it, then score it like the real method."""
    if "please hang" in text:
        hang()
    if "please die" in text:
        os._exit(9)
    if "please wait" in text:
        time.sleep(WAIT_S)
    if "please evaluate" in text:
        eval(text.split("<answer>")[1].split("</answer>")[0])
    return real_score_text(self, text, rules=rules)


if __name__ == "__main__":
    generators.Task.score_text = score_text  # type: ignore[method-assign]
    generators.open_task = open_task
    child.main()
