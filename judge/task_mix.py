"""A season's task mix: whether it is valid, sample questions, and how long its questions last.

A season asks no question twice, so a dataset has questions for a limited number of rounds. This
number of rounds is computed from the number of different questions in the dataset. The gate
(`swarm_tasks.gate`) counted the questions of common configurations; others are counted here.
"""

import functools
import math
from collections.abc import Sequence

import msgspec
from django.forms import ValidationError

from judge.models import Season
from judge.selectors.seasons import task_choices
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import check_config
from swarm_tasks.keyspace import Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.spaces import DatasetLifetime, Space, estimate_lifetimes, find_space, measure_space
from swarm_tasks.verifier import DrawnTask
from swarm_web.core.verifiers import process_verifier

MAX_TASKS = 64
SAMPLE_KEY = b"sample shown in the admin"

_DRAWS = 20_000
# How long a form waits for the measurement of one dataset, and of all of them.
_SECONDS, _SECONDS_FOR_ALL = 1.0, 8.0


def check_tasks(tasks: list[TaskChoice], *, verifier: AnyVerifier) -> list[DrawnTask]:
    """Return one sample question of each task. Raises ValidationError with all problems found."""
    problems: list[str] = []
    samples: list[DrawnTask] = []
    if not 1 <= len(tasks) <= MAX_TASKS:
        problems.append(f"A season has 1 to {MAX_TASKS} tasks, not {len(tasks)}.")
    if len({task.dataset for task in tasks}) < len(tasks):
        problems.append("Each dataset may be in the mix only once.")
    for task in tasks[:MAX_TASKS]:
        if not 0 < task.weight <= 1000:
            problems.append(f"{task.dataset}: the weight must be above 0 and at most 1000.")
        try:
            check_config(task.dataset, task.config)
            samples.append(draw_sample(task, verifier=verifier))
        except RefusedError as refusal:
            problems.append(f"{task.dataset}: {refusal.message}")
    if problems:
        raise ValidationError(problems)
    return samples


def draw_sample(task: TaskChoice, *, verifier: AnyVerifier) -> DrawnTask:
    """Return a sample question of a task, drawn from the training part, so that no round asks it.

    Raises RefusedError if no question can be drawn.
    """
    return verifier.draw(
        key=SAMPLE_KEY,
        part=Part.TRAINING,
        dataset=task.dataset,
        config=task.config,
        seed=0,
        counter=0,
    )


# ---- for how many rounds it lasts


def check_lasting(tasks: list[TaskChoice], questions: int, *, rounds: int) -> list[DatasetLifetime]:
    """Return for how many rounds of `questions` questions each dataset of the mix lasts.

    Raises ValidationError if `read_lasting` refuses a dataset, or if even the highest estimate of a
    dataset's number of rounds (`at_most`) is below `rounds`. In the second case, the error names
    all such datasets. Raises ValueError when there are fewer questions than tasks.
    """
    try:
        lasting = read_lasting(tasks, questions)
    except RefusedError as refusal:
        raise ValidationError(refusal.message) from None
    problems = [
        f"{each.dataset} has questions for {describe_lasting(each)}, but {rounds:,} are planned: "
        f"widen its ranges, ask fewer questions in a round, make rounds less frequent, or plan "
        f"fewer rounds."
        for each in lasting
        if each.at_most < rounds
    ]
    if problems:
        raise ValidationError(problems)
    return lasting


def read_lasting(tasks: Sequence[TaskChoice], questions: int) -> list[DatasetLifetime]:
    """Return for how many rounds of `questions` questions each dataset of the mix lasts.

    A configuration that the gate did not measure is measured now, and the result is cached in this
    process. Raises RefusedError if a dataset or its configuration is not allowed or cannot be
    measured, and ValueError when there are fewer questions than tasks.
    """
    for task in tasks:
        check_config(task.dataset, task.config)
    spaces = {task.dataset: find_space(task) for task in tasks}
    unknown = [task for task in tasks if spaces[task.dataset] is None]
    seconds = min(_SECONDS, _SECONDS_FOR_ALL / max(1, len(unknown)))
    measured = {
        task.dataset: _measure(task.dataset, msgspec.json.encode(task.config), seconds)
        for task in unknown
    }
    known = {dataset: space for dataset, space in spaces.items() if space is not None}
    return estimate_lifetimes(tasks, questions, spaces=known | measured)


def season_lasting(season: Season) -> list[DatasetLifetime]:
    """Return for how many rounds each dataset of a season has questions.

    Raises the errors of `read_lasting`.
    """
    return read_lasting(task_choices(season.tasks), season.questions_per_round)


def describe_lasting(lasting: DatasetLifetime) -> str:
    """Return in words for how many rounds a dataset has questions."""
    if lasting.about == math.inf:
        return f"at least {lasting.at_least:,} rounds"
    return f"about {int(lasting.about):,} rounds (at least {lasting.at_least:,})"


@functools.lru_cache(maxsize=256)
def _measure(dataset: str, config: bytes, seconds: float) -> Space:
    return measure_space(
        dataset,
        msgspec.json.decode(config),
        verifier=process_verifier(),
        draws=_DRAWS,
        seconds=seconds,
    )
