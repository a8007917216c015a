"""Compare the grading rates of the verifier and of the bare scorer.

The verifier grades in a sandboxed child process, or in a pool of children. The bare scorer calls
reasoning-gym in this process, without allow-list, child or deadline. All grade the same answers
and must agree on every one. They take turns, so that other processes slow all of them equally.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from reasoning_gym.utils import extract_answer

from swarm_protocol.messages import TaskSpec
from swarm_tasks.child.generators import open_dataset
from swarm_tasks.keyspace import Part
from swarm_tasks.pool import AnyVerifier, VerifierPool
from swarm_tasks.starter import STARTER_SEASON_SEED, STARTER_TASKS
from swarm_tasks.verifier import Verifier

_THOUGHTS = (
    "Let me work through this step by step.",
    "First I look at what is asked, and write it down.",
    "Then I take the parts one after the other and put them together.",
    "I check the result again, because it is easy to slip here.",
    "So the result follows.",
)
_KEY = b"bench"
QUESTIONS, ANSWERS_EACH, TURNS = 16, 1000, 25
POOL_SIZE = 2

Scores = list[list[float]]


@dataclass(frozen=True)
class Quiz:
    """A question with answers; the bare scorer needs reasoning-gym's `dataset` and `entry`."""

    spec: TaskSpec
    texts: list[str]
    dataset: Any
    entry: dict[str, Any]


@dataclass(frozen=True)
class GradingFigures:
    """Grading rates in answers per second, medians over TURNS turns.

    `bare_per_s` is the bare scorer's rate on one core. `child_per_s` is the rate of one verifier
    child, which shares this core with its parent, and `ratio` is `child_per_s` / `bare_per_s`.
    `pool_per_s` is the rate of POOL_SIZE children on all cores, and `pool_ratio` is
    `pool_per_s` / `bare_per_s`.
    """

    bare_per_s: float
    child_per_s: float
    ratio: float
    pool_per_s: float
    pool_ratio: float


def measure_grading() -> GradingFigures:
    """Measure how fast three graders grade ANSWERS_EACH answers to each of QUESTIONS questions.

    The graders are the bare scorer, one verifier child, and a pool of POOL_SIZE children. Raises
    RuntimeError if they disagree on an answer.
    """
    cores = os.sched_getaffinity(0)
    with VerifierPool(POOL_SIZE) as pool, _pinned({max(cores)}), Verifier() as verifier:
        quizzes = _make_quizzes(verifier)
        bare, child = partial(_grade_bare, quizzes), partial(_grade, verifier, quizzes)
        with _pinned(cores):
            pooled = partial(_grade, pool, quizzes)
            if not bare() == child() == pooled():
                raise RuntimeError("the child grades other than the bare scorer")
        sides: list[tuple[Callable[[], Scores], set[int]]] = [
            (bare, {max(cores)}),
            (child, {max(cores)}),
            (pooled, cores),
        ]
        seconds = [_take_turn(sides) for _ in range(TURNS)]
    bare_s, child_s, pool_s = (median(column) for column in zip(*seconds, strict=True))
    answers = QUESTIONS * ANSWERS_EACH
    return GradingFigures(
        bare_per_s=answers / bare_s,
        child_per_s=answers / child_s,
        ratio=bare_s / child_s,
        pool_per_s=answers / pool_s,
        pool_ratio=bare_s / pool_s,
    )


def _take_turn(sides: Sequence[tuple[Callable[[], Scores], set[int]]]) -> list[float]:
    """Let each grader, given with its CPU cores, grade once; return the seconds that each took."""
    seconds = []
    for grade, cores in sides:
        with _pinned(cores):
            begun = time.perf_counter()
            grade()
            seconds.append(time.perf_counter() - begun)
    return seconds


@contextmanager
def _pinned(cores: set[int]) -> Iterator[None]:
    """In the block, limit this process and the children that it starts to these CPU cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _grade_bare(quizzes: Sequence[Quiz]) -> Scores:
    scores = []
    for quiz in quizzes:
        score_answer, entry = quiz.dataset.score_answer, quiz.entry
        answers = (extract_answer(text) for text in quiz.texts)
        scores.append(
            [0.0 if answer is None else score_answer(answer, entry) for answer in answers]
        )
    return scores


def _grade(verifier: AnyVerifier, quizzes: Sequence[Quiz]) -> Scores:
    verdicts = verifier.score_many([(quiz.spec, quiz.texts) for quiz in quizzes])
    return [[verdict.score for verdict in group] for group in verdicts]


# ---- questions and answers


def _make_quizzes(verifier: Verifier) -> list[Quiz]:
    """Return QUESTIONS questions with answers, from each starter dataset in turn.

    The questions are from the judge's part of the keyspace, like those of a round.
    """
    quizzes = []
    for place in range(QUESTIONS):
        task = STARTER_TASKS[place % len(STARTER_TASKS)]
        spec = verifier.draw(
            key=_KEY,
            part=Part.JUDGE,
            dataset=task.dataset,
            config=task.config,
            seed=STARTER_SEASON_SEED,
            counter=place,
        ).spec
        dataset = open_dataset(spec.dataset, spec.config, seed=spec.seed)
        entry = dict(dataset[spec.index])
        rng = random.Random(place)
        texts = [_make_text(entry["answer"], rng) for _ in range(ANSWERS_EACH)]
        quizzes.append(Quiz(spec, texts, dataset, entry))
    return quizzes


def _make_text(right: str, rng: random.Random) -> str:
    """Return a random completion like a small model's; `right` is the right answer.

    The completion has no answer (10 % of cases), the right answer (40 %), the right answer in a
    sentence (10 %), or a shuffled answer, which is seldom right (40 %).
    """
    thoughts = " ".join(rng.choices(_THOUGHTS, k=rng.randrange(9)))
    kind = rng.random()
    if kind < 0.1:
        return thoughts
    if kind < 0.5:
        answer = right
    elif kind < 0.6:
        answer = f"The answer is {right}."
    else:
        answer = "".join(rng.sample(right, len(right))) + rng.choice(["", "1", "0"])
    return f"{thoughts} <answer>{answer}</answer>"
