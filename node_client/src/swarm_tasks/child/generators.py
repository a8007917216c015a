"""Makes tasks and scores answers with reasoning-gym, for allowed datasets only.

Building a dataset object takes up to 0.2 s and making an entry up to 1 s, so both are cached.
Scoring one more answer then takes microseconds for nearly all datasets.
"""

import decimal
import functools
import gc
import importlib.metadata
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config
from swarm_tasks.allowlist import allowed_datasets, check_config
from swarm_tasks.answers import AnswerRules, list_answers
from swarm_tasks.keyspace import INDEX_END
from swarm_tasks.step_board import NO_ANSWER, SOLVED

# cellpylib, which one generator needs, imports matplotlib only to draw. Empty modules in its place
# halve the start-up time of the child, and keep matplotlib from writing a font cache to the home.
for _name in (
    *("matplotlib", "matplotlib.pyplot", "matplotlib.animation", "matplotlib.collections"),
    "mpl_toolkits.mplot3d",
):
    sys.modules.setdefault(_name, types.ModuleType(_name)).__dict__.setdefault("Axes3D", None)

# Imported objects stay alive; scanning them for garbage takes a tenth of the child's start-up time.
gc.disable()
import reasoning_gym  # noqa: E402
from reasoning_gym.factory import DATASETS  # noqa: E402

from swarm_tasks.child.own import OWN_DATASETS  # noqa: E402

gc.freeze()
gc.enable()

# The library then returns our classes for these names.
for _name, _own in OWN_DATASETS.items():
    DATASETS[_name] = (_own, DATASETS[_name][1])

# Some generators make a list of `size` items in advance. For these the index is added to the seed,
# and the entry is the first item of a list of this size, which is enough for each kind of item.
_SIZE_WITHOUT_INDEX = 5


def installed_generator() -> str:
    """Return the name and version of the generator library, as specs carry it."""
    return f"reasoning-gym {importlib.metadata.version('reasoning-gym')}"


def dataset_names() -> list[str]:
    """Return the names of all datasets of the library except `composite`, which mixes others."""
    return sorted(set(DATASETS) - {"composite"})


class Task:
    """One task: its question, and a scorer for completions that answer it."""

    def __init__(self, entry: Mapping[str, Any], scorer: Any) -> None:
        self.question = str(entry["question"])
        self._entry = entry
        self._score_answer = scorer.score_answer

    @property
    def right_answer(self) -> str:
        """The right answer of the entry, for the gate and for tests."""
        return str(self._entry["answer"])

    def score_text(self, text: str, *, rules: AnswerRules) -> float:
        """Return the score in [0, 1] of a completion's answer, NO_ANSWER if it has none.

        If the answer has several readings (`answers.list_answers`), the best score counts. If no
        reading can be scored, this raises the error of the first one. That is the verifier's own
        error, or ValueError if the verifier returned a number outside [0, 1].
        """
        answers = list_answers(text, rules=rules)
        if not answers:
            return NO_ANSWER
        return self._score_best(answers) if len(answers) > 1 else self._score(answers[0])

    def _score_best(self, answers: Sequence[str]) -> float:
        best, problem = -1.0, None
        for answer in answers:
            try:
                best = max(best, self._score(answer))
            except Exception as raised:  # noqa: BLE001 - a verifier may raise anything
                problem = problem or raised
            if best >= SOLVED:
                break
        if best < 0 and problem is not None:
            raise problem
        return best

    def _score(self, answer: str) -> float:
        score: float = self._score_answer(answer, self._entry)
        if 0 <= score <= 1:
            return score
        raise ValueError(f"the verifier returned {score}")


def open_task(dataset: str, config: Config, *, seed: int, index: int) -> Task:
    """Return the task at an index of an allowed dataset.

    Raises RefusedError TASK_DATASET, TASK_CONFIG or TASK_INDEX if the dataset, configuration or
    index is not allowed, and whatever the generator raises.
    """
    return _task(dataset, msgspec.json.encode(config, order="sorted"), seed, index)


def build_entry(
    dataset: str, config: Mapping[str, Any], *, seed: int, index: int, by_index: bool
) -> dict[str, Any]:
    """Return the library's entry for an index, without checking the allow-list.

    `by_index` says whether the dataset can make the entry of any index directly. If it cannot, the
    result is the first entry of the dataset with the seed `seed + index`.

    Raises AssertionError for a configuration that the generator refuses.
    """
    if by_index:
        entry = open_dataset(dataset, config, seed=seed)[index]
    else:
        entry = open_dataset(dataset, config, seed=seed + index, size=_SIZE_WITHOUT_INDEX)[0]
    return dict(entry)


def open_dataset(
    dataset: str, config: Mapping[str, Any], *, seed: int, size: int | None = None
) -> Any:
    """Return a dataset object of the library, which makes entries and scores answers.

    `size` is the length of the dataset, None for the library's default.

    Raises AssertionError for a configuration that the generator refuses.
    """
    sized = {} if size is None else {"size": size}
    return reasoning_gym.create_dataset(dataset, **config, **sized, seed=seed)


@functools.lru_cache(maxsize=1024)
def _task(dataset: str, config_key: bytes, seed: int, index: int) -> Task:
    config = msgspec.json.decode(config_key)
    check_config(dataset, config)
    if not 0 <= index < INDEX_END:
        raise RefusedError(ErrorCode.TASK_INDEX, f"index {index} lies outside [0, 2**31)")
    scorer = _dataset(dataset, config_key, seed)
    # decimal_arithmetic sets the precision for the whole process, and others would round to it.
    with decimal.localcontext(decimal.DefaultContext):
        if allowed_datasets()[dataset].by_index:
            return Task(dict(scorer[index]), scorer)
        return Task(build_entry(dataset, config, seed=seed, index=index, by_index=False), scorer)


@functools.lru_cache(maxsize=64)
def _dataset(dataset: str, config_key: bytes, seed: int) -> Any:
    try:
        return open_dataset(dataset, msgspec.json.decode(config_key), seed=seed)
    except AssertionError as problem:
        raise RefusedError(ErrorCode.TASK_CONFIG, f"{dataset}: {problem}") from None
