"""The verifier's child with a verifier that answers can break: run in its place by tests."""

import os
import time

from swarm_protocol.messages import Config
from swarm_tasks.child import __main__ as child
from swarm_tasks.child import generators

score_as_it_is = generators.score_text


def score_text(dataset: str, config: Config, *, seed: int, index: int, text: str) -> float | None:
    """Hang, die or evaluate as the text says; score any other text as the real one does."""
    if "please hang" in text:
        while True:
            time.process_time()
    if "please die" in text:
        os._exit(9)
    if "please evaluate" in text:
        eval(text.split("<answer>")[1].split("</answer>")[0])
    return score_as_it_is(dataset, config, seed=seed, index=index, text=text)


if __name__ == "__main__":
    generators.score_text = score_text
    child.main()
