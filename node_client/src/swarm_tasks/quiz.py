"""How a judge round's questions follow from public rules and one secret; no I/O of its own.

The judge draws a quiz and publishes a commitment before anybody answers; when the round has closed
it reveals the secret, and anybody can draw the quiz again and compare.
"""

import hashlib
from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from swarm_protocol.messages import TaskChoice
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier

# How many candidates are drawn for each question before a repeated one is taken.
_PATIENCE = 20


class QuizRules(Struct, frozen=True):
    """All that decides a round's questions, but the secret.

    `questions` is how many are asked. The questions do not depend on `round` and `season`: those
    two say which round the commitment is for.
    """

    round: int
    season: str
    seed: int
    generator: str
    tasks: list[TaskChoice]
    questions: int
    format: Literal["murmuration-quiz-1"] = "murmuration-quiz-1"


def share_questions(tasks: Sequence[TaskChoice], total: int) -> list[int]:
    """Return how many of `total` questions each task gets: one, and more in proportion to weight.

    Largest remainders get what is left over, so that every round has the same strata. Raises
    ValueError when there are fewer questions than tasks.
    """
    if total < len(tasks):
        raise ValueError(f"{total} questions cannot represent {len(tasks)} datasets")
    spare = total - len(tasks)
    weight = sum(task.weight for task in tasks)
    exact = [spare * task.weight / weight for task in tasks]
    counts = [int(share) for share in exact]
    by_remainder = sorted(range(len(tasks)), key=lambda i: (counts[i] - exact[i], i))
    for i in by_remainder[: spare - sum(counts)]:
        counts[i] += 1
    return [1 + count for count in counts]


def draw_quiz(rules: QuizRules, *, secret: bytes, verifier: Verifier) -> list[DrawnTask]:
    """Draw a quiz from the judge's part of the key space, dataset by dataset.

    Questions differ from each other unless a dataset's question space is too small for that.
    Raises RefusedError as `Verifier.draw` does.
    """
    drawn: list[DrawnTask] = []
    seen: set[str] = set()
    for task, count in zip(rules.tasks, share_questions(rules.tasks, rules.questions), strict=True):
        wanted = len(drawn) + count
        for counter in range(_PATIENCE * count):
            candidate = verifier.draw(
                key=secret,
                part=Part.JUDGE,
                dataset=task.dataset,
                config=task.config,
                seed=rules.seed,
                counter=counter,
            )
            left = _PATIENCE * count - counter
            if candidate.question not in seen or left <= wanted - len(drawn):
                seen.add(candidate.question)
                drawn.append(candidate)
            if len(drawn) == wanted:
                break
    return drawn


def commit_quiz(rules: QuizRules, *, secret: bytes) -> str:
    """Return the commitment: SHA-256 of the secret followed by the rules, in hexadecimal.

    The rules are written as JSON with sorted keys and without spaces. The secret's 256 random bits
    keep the hash from giving anything away.
    """
    return hashlib.sha256(secret + msgspec.json.encode(rules, order="sorted")).hexdigest()
