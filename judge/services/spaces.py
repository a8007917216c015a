"""For how many rounds a season's datasets last; what the gate did not measure is measured here."""

import functools
from collections.abc import Sequence

import msgspec

from judge.models import Season
from judge.selectors.seasons import task_choices
from swarm_protocol.messages import TaskChoice
from swarm_tasks.spaces import Lasting, Space, find_space, measure_space, tell_lasting
from swarm_web.verifiers import process_verifier

_DRAWS = 20_000
# So long a form waits for one dataset, and for all of them.
_SECONDS, _SECONDS_FOR_ALL = 1.0, 8.0


def read_lasting(tasks: Sequence[TaskChoice], questions: int) -> list[Lasting]:
    """Return for how many rounds of so many questions each task has questions. Raises RefusedError.

    What this process measured once it keeps.
    """
    spaces = {task.dataset: find_space(task) for task in tasks}
    unknown = [task for task in tasks if spaces[task.dataset] is None]
    seconds = min(_SECONDS, _SECONDS_FOR_ALL / max(1, len(unknown)))
    measured = {
        task.dataset: _measure(task.dataset, msgspec.json.encode(task.config), seconds)
        for task in unknown
    }
    known = {dataset: space for dataset, space in spaces.items() if space is not None}
    return tell_lasting(tasks, questions, spaces=known | measured)


def season_lasting(season: Season) -> list[Lasting]:
    """Return for how many rounds each dataset of a season lasts. Raises RefusedError."""
    return read_lasting(task_choices(season.tasks), season.questions_per_round)


@functools.lru_cache(maxsize=256)
def _measure(dataset: str, config: bytes, seconds: float) -> Space:
    return measure_space(
        dataset,
        msgspec.json.decode(config),
        verifier=process_verifier(),
        draws=_DRAWS,
        seconds=seconds,
    )
