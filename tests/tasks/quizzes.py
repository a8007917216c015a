"""Quiz rules for tests, and quizzes drawn from them."""

from collections.abc import Container, Sequence

import msgspec

from swarm_protocol.messages import TaskChoice
from swarm_tasks import quiz
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import NOTHING_ASKED
from swarm_tasks.beacon import BeaconValue
from swarm_tasks.quiz import (
    QUIZ_FORMAT_1,
    QuizRules,
)
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import DrawnTask, Verifier
from tests.tasks.specs import SEED

SECRET = bytes(range(32))


def tasks_of(weights: list[float]) -> list[TaskChoice]:
    return [
        TaskChoice(dataset=f"d{i}", config={}, weight=weight) for i, weight in enumerate(weights)
    ]


def rules_of(
    *tasks: TaskChoice, questions: int = 8, round: int = 1, season: str = "Season"
) -> QuizRules:
    return QuizRules(
        round=round,
        season=season,
        seed=SEED,
        generator=GENERATOR,
        tasks=list(tasks or STARTER_TASKS),
        questions=questions,
        answers=AnswerRules.EXACT.value,
        asked=NOTHING_ASKED,
    )


def first_format(rules: QuizRules) -> QuizRules:
    return msgspec.structs.replace(
        rules, format=QUIZ_FORMAT_1, answers=msgspec.UNSET, asked=msgspec.UNSET
    )


def draw_quiz(
    rules: QuizRules,
    *,
    secret: bytes,
    verifier: Verifier,
    asked: Container[int] = (),
    beacon: BeaconValue | None = None,
) -> list[DrawnTask]:
    def seen(digests: Sequence[int]) -> list[int]:
        return [digest for digest in digests if digest in asked]

    return quiz.draw_quiz(rules, secret=secret, seen=seen, verifier=verifier, beacon=beacon)
