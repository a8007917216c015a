"""The verifier's child with a verifier that answers can break: run in its place by tests."""

import os
import time

import tests.tasks.arithmetic_alone  # noqa: F401  # before reasoning-gym
from swarm_tasks.answers import AnswerRules
from swarm_tasks.child import __main__ as child
from swarm_tasks.child import generators
from tests.tasks.specs import WAIT_S

score_as_it_is = generators.Task.score_text


def score_text(self: generators.Task, text: str, *, rules: AnswerRules) -> float:
    """Hang, die, wait or evaluate as the text says; score it as the real one does if it can."""
    if "please hang" in text:
        while True:
            time.process_time()
    if "please die" in text:
        os._exit(9)
    if "please wait" in text:
        time.sleep(WAIT_S)
    if "please evaluate" in text:
        eval(text.split("<answer>")[1].split("</answer>")[0])
    return score_as_it_is(self, text, rules=rules)


if __name__ == "__main__":
    generators.Task.score_text = score_text  # type: ignore[method-assign]
    child.main()
