"""How fast answers are graded through the verifier child, beside the bare scorer in this process.

The bare side calls the generator library directly, with nothing between: no allow-list, no child,
no deadline. Both sides grade the same answers and must agree on every one. They take turns, so that
whatever else the machine does meets both.
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

Scores = list[list[float]]


@dataclass(frozen=True)
class Quiz:
    """One question with its answers, and the library's own objects for grading them bare."""

    spec: TaskSpec
    texts: list[str]
    dataset: Any
    entry: dict[str, Any]


@dataclass(frozen=True)
class GradingFigures:
    """Answers graded in a second, medians of the turns.

    `child_per_s` is one child and its parent together on the same single core as the bare scorer,
    and `ratio` its rate to the bare one's. `pool_per_s` is a pool of `pool_size` children on all
    cores, and `pool_ratio` its rate to the bare scorer's on one core.
    """

    answers: int
    mean_chars: float
    bare_per_s: float
    child_per_s: float
    ratio: float
    pool_size: int
    pool_per_s: float
    pool_ratio: float


def measure_grading(
    *, questions: int = 16, answers_each: int = 1000, turns: int = 25, pool_size: int = 2
) -> GradingFigures:
    """Grade `answers_each` answers to each of `questions` questions of the starter mix, in turns.

    Raises RuntimeError when the two sides do not agree.
    """
    cores = os.sched_getaffinity(0)
    with VerifierPool(pool_size) as pool, _pinned({max(cores)}), Verifier() as verifier:
        quizzes = _make_quizzes(verifier, questions=questions, answers_each=answers_each)
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
        seconds = [_take_turn(sides) for _ in range(turns)]
    bare_s, child_s, pool_s = (median(column) for column in zip(*seconds, strict=True))
    answers = questions * answers_each
    chars = sum(len(text) for quiz in quizzes for text in quiz.texts)
    return GradingFigures(
        answers=answers,
        mean_chars=chars / answers,
        bare_per_s=answers / bare_s,
        child_per_s=answers / child_s,
        ratio=bare_s / child_s,
        pool_size=pool_size,
        pool_per_s=answers / pool_s,
        pool_ratio=bare_s / pool_s,
    )


def _take_turn(sides: Sequence[tuple[Callable[[], Scores], set[int]]]) -> list[float]:
    """Return the seconds that each side takes on its cores."""
    seconds = []
    for grade, cores in sides:
        with _pinned(cores):
            begun = time.perf_counter()
            grade()
            seconds.append(time.perf_counter() - begun)
    return seconds


@contextmanager
def _pinned(cores: set[int]) -> Iterator[None]:
    """Keep this process, and the children that it starts meanwhile, on these cores."""
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


def _make_quizzes(verifier: Verifier, *, questions: int, answers_each: int) -> list[Quiz]:
    """Return questions of the judge's part, spread over the starter mix, with their answers."""
    quizzes = []
    for place in range(questions):
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
        texts = [_make_text(entry["answer"], rng) for _ in range(answers_each)]
        quizzes.append(Quiz(spec, texts, dataset, entry))
    return quizzes


def _make_text(right: str, rng: random.Random) -> str:
    """Return a completion as small models write them: some reasoning, then an answer or none."""
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
