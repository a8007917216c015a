"""Task specs and answers for tests."""

from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR

SEED = 20_250_911
# How long a faulty child waits when a text requests it, in seconds.
WAIT_S = 0.3
# Indices at which a faulty child hangs or dies when it opens the task.
HANGS, DIES = 666, 667
ONE_DIGIT: Config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1}


def make_spec(
    dataset: str = "chain_sum", *, config: Config | None = None, seed: int = SEED, index: int = 7
) -> TaskSpec:
    return TaskSpec(dataset, config or {}, seed, index, GENERATOR)


def answered(text: str) -> str:
    """Return a completion that gives `text` as its answer."""
    return f"Let me think. <answer>{text}</answer>"


def solve_sum(question: str) -> str:
    """Return the right answer of a chain_sum question."""
    term = question.split(":")[-1].split("=")[0].split()
    signs = [1, *(1 if sign == "+" else -1 for sign in term[1::2])]
    return str(sum(sign * int(number) for sign, number in zip(signs, term[::2], strict=True)))
