"""How many different questions a dataset has, estimated from a sample; no I/O but one package file.

A season asks no question twice, so it can ask of a dataset until nearly all that is drawn was asked
before. Questions are drawn until that happens, or until there are enough to tell how far it is:
from how many were drawn once and how many twice follows how many were not drawn yet (Chao, Scand.
J. Statist. 11, 1984), and what part of the draws they would be (Good, Biometrika 40, 1953).

`spaces.json` holds what `python -m swarm_tasks.gate.spaces` measured (`docs/tasks.md`).
"""

import functools
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from random import Random

import msgspec
from msgspec import Struct

from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.allowlist import allowed_datasets
from swarm_tasks.generation_errors import GenerationError
from swarm_tasks.keyspace import INDEX_END, RANGES, Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import share_questions
from swarm_tasks.step_board import MAX_STEPS

# A dataset lasts while at least this part of what is drawn was not asked yet.
MIN_NEW = 0.2
_SEED = 20_250_911
_JUDGE_SHARE = len(RANGES[Part.JUDGE]) / INDEX_END
# The normal distribution's quantile of a two-sided interval at 95 %.
_Z = 1.959964
# A Poisson count with this mean is 0 in one of forty samples.
_UNSEEN_PAIRS = -math.log(0.025)
_FIRST_BATCH, _BATCH_S = 16, 0.1


class Space(Struct, frozen=True):
    """A sample of a dataset's questions: so many drawn, different, and drawn once and twice."""

    draws: int
    distinct: int
    once: int
    twice: int

    @property
    def used_up(self) -> bool:
        """Whether the sample went on until hardly anything that was drawn was new."""
        return self.draws > 0 and self.once <= MIN_NEW * self.draws

    @property
    def questions(self) -> float:
        """How many questions can be asked before the dataset is used up; infinite if none came
        twice.

        A lower bound in expectation where questions differ in how often they are drawn.
        """
        return self._extrapolate(0)

    @property
    def at_least(self) -> float:
        """The lower end of `questions`' interval at 95 %, which is log-normal (Chao, Biometrics 43,
        1987); where none came twice, from the most pairs that would often have gone unseen.
        """
        return self._extrapolate(-_Z)

    @property
    def at_most(self) -> float:
        """The upper end of that interval; infinite if none came twice."""
        return self._extrapolate(_Z)

    def _extrapolate(self, deviations: float) -> float:
        """Return `questions`, so many standard deviations of its logarithm away."""
        if self.used_up:
            return self.distinct + deviations * math.sqrt(self.once)
        if not self.twice and deviations >= 0:
            return math.inf
        undrawn = self.once**2 / (2 * (self.twice or _UNSEEN_PAIRS))
        if self.twice:
            turn = self.twice / self.once
            variance = (1 + 4 * turn + 2 * turn**2) / self.twice
            undrawn *= math.exp(deviations * math.sqrt(math.log1p(variance)))
        return self.distinct + undrawn * max(0.0, 1 - MIN_NEW * self.draws / max(1, self.once))


class MeasuredSpace(Space, frozen=True, kw_only=True):
    """A sample, and the configuration whose questions were drawn."""

    config: Config


class SpaceRecord(Struct, frozen=True):
    """The whole of `spaces.json`: for each dataset its default configuration and its levels."""

    generator: str
    spaces: dict[str, list[MeasuredSpace]]


@functools.cache
def space_record() -> SpaceRecord:
    """Return the spaces that this version ships."""
    raw = resources.files("swarm_tasks").joinpath("spaces.json").read_bytes()
    return msgspec.json.decode(raw, type=SpaceRecord)


def find_space(task: TaskChoice) -> Space | None:
    """Return what the gate measured for a task's configuration, None if it did not.

    The larger sample where there are two.
    """
    wanted = _complete(task.dataset, task.config)
    measured = space_record().spaces.get(task.dataset, [])
    samples = [each for each in measured if _complete(task.dataset, each.config) == wanted]
    return max(samples, key=lambda sample: sample.draws, default=None)


def measure_space(
    dataset: str, config: Config, *, verifier: AnyVerifier, draws: int, seconds: float
) -> Space:
    """Draw questions until the dataset is used up, at most so many and for about so long.

    The sample ends, too, where the generator hangs. Raises RefusedError TASK_DATASET or
    TASK_CONFIG, or VERIFIER_FAILED when there is no verifier.
    """
    rng, until = Random(_SEED), time.monotonic() + seconds
    counts: Counter[int] = Counter()
    space, size = Space(0, 0, 0, 0), _FIRST_BATCH
    while space.draws < draws and time.monotonic() < until:
        start = time.monotonic()
        indices = [rng.randrange(INDEX_END) for _ in range(min(size, draws - space.draws))]
        try:
            digests = verifier.sample_digests(
                dataset=dataset, config=config, seed=_SEED, indices=indices
            )
        except GenerationError:
            break
        space = _count(digests, counts, space)
        if not digests or (space.used_up and space.draws > _FIRST_BATCH):
            break
        if time.monotonic() - start < _BATCH_S:
            size = min(2 * size, MAX_STEPS)
    return space


def _count(digests: Sequence[int], counts: Counter[int], space: Space) -> Space:
    """Return the sample after further draws, up to the one that used the dataset up."""
    draws, once, twice = space.draws, space.once, space.twice
    for digest in digests:
        counts[digest] += 1
        draws += 1
        once += {1: 1, 2: -1}.get(counts[digest], 0)
        twice += {2: 1, 3: -1}.get(counts[digest], 0)
        if draws > _FIRST_BATCH and once <= MIN_NEW * draws:
            break
    return Space(draws, len(counts), once, twice)


def _complete(dataset: str, config: Config) -> Config:
    """Return the configuration with the defaults of the fields that it leaves out."""
    fields = allowed_datasets()[dataset].fields
    return {name: field.default for name, field in fields.items()} | config


class DatasetLifetime(Struct, frozen=True):
    """For how many rounds a dataset has questions: the interval at 95 % and the best estimate
    between; infinite where too few questions came twice.

    `asked` is how many of its questions each round asks.
    """

    dataset: str
    asked: int
    at_least: int
    about: float
    at_most: float


def estimate_lifetimes(
    tasks: Sequence[TaskChoice], questions: int, *, spaces: Mapping[str, Space]
) -> list[DatasetLifetime]:
    """Return for how many rounds each task of a mix lasts, by the spaces of their datasets."""
    shares = share_questions(tasks, questions)
    return [
        DatasetLifetime(
            task.dataset,
            asked=share,
            at_least=int(_of_judge(spaces[task.dataset].at_least, deviations=_Z) / share),
            about=_of_judge(spaces[task.dataset].questions, deviations=0) / share,
            at_most=_of_judge(spaces[task.dataset].at_most, deviations=-_Z) / share,
        )
        for task, share in zip(tasks, shares, strict=True)
    ]


def _of_judge(questions: float, *, deviations: float) -> float:
    """Return how many of the questions are the judge's; hashes decide, so that it is binomial."""
    if questions == math.inf:
        return questions
    spread = math.sqrt(questions * _JUDGE_SHARE * (1 - _JUDGE_SHARE))
    return max(questions * _JUDGE_SHARE - deviations * spread, 0.0)
