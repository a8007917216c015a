"""Estimates from a sample how many different questions a dataset has.

A season asks no question twice, so a dataset is used up when at least four of five drawn questions
were asked before. `measure_space` draws questions until the dataset is used up or a limit is
reached. If a limit was reached first, the numbers of questions that were drawn exactly once and
exactly twice give two estimates: how many questions were never drawn (Chao, Scand. J. Statist. 11,
1984), and what share of further draws would give a new question (Good, Biometrika 40, 1953).

`spaces.json` has the samples that `python -m swarm_tasks.gate.spaces` drew (`docs/tasks.md`).
"""

import functools
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import msgspec
from msgspec import Struct

from swarm_protocol.messages import Config, TaskChoice
from swarm_tasks.allowlist import allowed_datasets
from swarm_tasks.gate_records import PACKAGE
from swarm_tasks.generation_errors import GenerationError
from swarm_tasks.keyspace import INDEX_END, RANGES, Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.quiz import share_questions

# A dataset is used up when at most this share of drawn questions has not been asked yet.
MIN_NEW = 0.2
_SEED = 20_250_911
_JUDGE_SHARE = len(RANGES[Part.JUDGE]) / INDEX_END
# The normal distribution's quantile of a two-sided interval at 95 %.
_Z = 1.959964
# A Poisson count with this mean is 0 in one of forty samples.
_UNSEEN_PAIRS = -math.log(0.025)
_FIRST_BATCH, _BATCH_S = 16, 0.1


class Space(Struct, frozen=True):
    """The counts of a sample of a dataset's questions.

    `draws` is the number of questions drawn, including repeats, and `distinct` the number of
    different ones. `once` and `twice` are the numbers of questions drawn exactly once and twice.
    """

    draws: int
    distinct: int
    once: int
    twice: int

    @property
    def used_up(self) -> bool:
        """Whether few further draws, at most a share MIN_NEW, are expected to give new questions.

        False if nothing was drawn.
        """
        return self.draws > 0 and self.once <= MIN_NEW * self.draws

    @property
    def questions(self) -> float:
        """Estimate of how many questions can be asked before the dataset is used up.

        It is infinite if the sample did not use up the dataset and drew no question exactly twice.
        If some questions are drawn more often than others, the estimate is too low on average.
        """
        return self._extrapolate(0)

    @property
    def at_least(self) -> float:
        """Lower end of the 95 % interval of `questions`.

        If the dataset is used up, the interval is normal, otherwise log-normal (Chao, Biometrics
        43, 1987). There is one exception: the dataset is not used up, and no question was drawn
        exactly twice. The lower end is then the estimate with _UNSEEN_PAIRS in place of `twice`.
        _UNSEEN_PAIRS is the largest expected value of `twice` that is consistent with a count of 0.
        """
        return self._extrapolate(-_Z)

    @property
    def at_most(self) -> float:
        """Upper end of the 95 % interval of `questions`; infinite if `questions` is infinite."""
        return self._extrapolate(_Z)

    def _extrapolate(self, deviations: float) -> float:
        """Return the estimate `questions`, shifted by `deviations` standard deviations.

        If the dataset is used up, the standard deviation is that of `distinct`, otherwise that of
        the logarithm of the estimated number of questions never drawn.
        """
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
    """The content of `spaces.json`: for each dataset, a sample for each of several configurations.

    The configurations are the default one, one for each level, and those in DEMO_TASKS and
    YEAR_TASKS (`swarm_tasks.starter`). `generator` is the name and version of reasoning-gym.
    """

    generator: str
    spaces: dict[str, list[MeasuredSpace]]


@functools.cache
def space_record() -> SpaceRecord:
    """Return the content of the package's `spaces.json`."""
    return msgspec.json.decode((PACKAGE / "spaces.json").read_bytes(), type=SpaceRecord)


def find_space(task: TaskChoice) -> Space | None:
    """Return the sample in `spaces.json` for a task's dataset and configuration; None if missing.

    If there are several samples, return the one with the most draws.

    Raises KeyError for a dataset that is not allowed.
    """
    wanted = _complete(task.dataset, task.config)
    measured = space_record().spaces.get(task.dataset, [])
    samples = [each for each in measured if _complete(task.dataset, each.config) == wanted]
    return max(samples, key=lambda sample: sample.draws, default=None)


def measure_space(
    dataset: str, config: Config, *, verifier: AnyVerifier, draws: int, seconds: float
) -> Space:
    """Draw questions until the dataset is used up (`Space.used_up`), and return the counts.

    Drawing also stops after `draws` questions, or after about `seconds` seconds. Questions are
    drawn in batches. If the generator hangs, ends the child, or raises at all indices of a batch,
    drawing stops too, and this batch is not counted.

    Raises RefusedError TASK_DATASET or TASK_CONFIG, or VERIFIER_FAILED when no verifier child can
    be used.
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
            size *= 2
    return space


def _count(digests: Sequence[int], counts: Counter[int], space: Space) -> Space:
    """Return `space` with the draws `digests` added, but none after the dataset is used up.

    `counts` maps each digest to its number of draws, and is updated with the added draws.
    """
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
    """Return `config` with the default added for each settable field that it does not set."""
    fields = allowed_datasets()[dataset].fields
    return {name: field.default for name, field in fields.items()} | config


class DatasetLifetime(Struct, frozen=True):
    """For how many rounds a dataset has questions, if each round asks `asked` of its questions.

    `about` is the best estimate, and `at_least` and `at_most` are the ends of its 95 % interval.
    `about` and `at_most` may be infinite (`Space.questions`).
    """

    dataset: str
    asked: int
    at_least: int
    about: float
    at_most: float


def estimate_lifetimes(
    tasks: Sequence[TaskChoice], questions: int, *, spaces: Mapping[str, Space]
) -> list[DatasetLifetime]:
    """Return for how many rounds each dataset has questions, in the order of `tasks`.

    A round asks `questions` questions in total. `spaces` must have a sample for each dataset.
    Raises ValueError when there are fewer questions than tasks.
    """
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
    """Return how many of a dataset's questions are expected in the judge's part.

    `deviations` standard deviations are subtracted, but the result is never negative. Hashes assign
    questions to keyspace parts, so the number has a binomial distribution.
    """
    if questions == math.inf:
        return questions
    spread = math.sqrt(questions * _JUDGE_SHARE * (1 - _JUDGE_SHARE))
    return max(questions * _JUDGE_SHARE - deviations * spread, 0.0)
