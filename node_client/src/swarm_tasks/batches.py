"""Many texts to many tasks: cut into jobs and requests, and put together again; no I/O."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from swarm_protocol.messages import MAX_COMPLETION_CHARS, TaskSpec
from swarm_tasks.board import MAX_STEPS, UNMADE, UNSCORED
from swarm_tasks.pipe import Job

# Completion texts, each group with the task that it answers.
Batch = Sequence[tuple[TaskSpec, Sequence[str]]]

# What came of a text: what it is worth, as a step on the board, and the seconds that it took.
Trial = tuple[float, float]

_WRONG: Trial = (0.0, 0.0)
_WAITING: Trial = (UNSCORED, 0.0)


class Progress:
    """How far a batch has come: the jobs that wait, and what their texts are worth so far."""

    def __init__(self, batch: Batch) -> None:
        self._texts = [texts for _, texts in batch]
        self._trials: list[list[Trial]] = [[] for _ in batch]
        self._waiting: deque[tuple[int, Job]] = deque(_cut_jobs(batch))
        self._taken: list[tuple[int, Job]] = []

    def take_jobs(self) -> list[Job]:
        """Return the next jobs, as many as one request holds; none when all are done."""
        self._taken = []
        room = MAX_STEPS
        while self._waiting and (room := room - _count_steps(self._waiting[0][1])) >= 0:
            self._taken.append(self._waiting.popleft())
        return [job for _, job in self._taken]

    def note(self, trials: Iterable[Trial]) -> None:
        """Note what the taken jobs' steps came to; what is missing at the end waits again."""
        done = iter(trials)
        unfinished: list[tuple[int, Job]] = []
        for place, job in self._taken:
            next(done, None)
            scored = list(islice(done, len(job.texts)))
            self._trials[place] += scored
            if len(scored) < len(job.texts):
                rest = msgspec.structs.replace(job, texts=job.texts[len(scored) :])
                unfinished.append((place, rest))
        self._waiting.extendleft(reversed(unfinished))

    def result(self) -> list[list[Trial]]:
        """Return what came of each text, group by group.

        One over the cap is wrong unread, one that still waits is worth UNSCORED.
        """
        return [
            scored if len(scored) == len(texts) else list(_fill_in(texts, scored))
            for texts, scored in zip(self._texts, self._trials, strict=True)
        ]


def lay_out_steps(jobs: Sequence[Job]) -> list[float]:
    """Return the pending steps of a request."""
    steps: list[float] = []
    for job in jobs:
        steps.append(UNMADE)
        steps += [UNSCORED] * len(job.texts)
    return steps


def _count_steps(job: Job) -> int:
    return 1 + len(job.texts)


def _cut_jobs(batch: Batch) -> Iterator[tuple[int, Job]]:
    """Yield jobs that each fit into one request, with the place of their group."""
    for place, (spec, texts) in enumerate(batch):
        readable = [
            text if text.isascii() else _make_readable(text)
            for text in texts
            if len(text) <= MAX_COMPLETION_CHARS
        ]
        for start in range(0, len(readable), MAX_STEPS - 1):
            part = readable[start : start + MAX_STEPS - 1]
            yield place, Job(spec.dataset, spec.config, spec.seed, spec.index, part)


def _make_readable(text: str) -> str:
    """Return the text without lone surrogates, which no encoding can carry."""
    return text.encode(errors="replace").decode()


def _fill_in(texts: Sequence[str], trials: Sequence[Trial]) -> Iterator[Trial]:
    scored = iter(trials)
    for text in texts:
        yield next(scored, _WAITING) if len(text) <= MAX_COMPLETION_CHARS else _WRONG


# A part of a batch: groups of texts, with the place in the whole that each came from.
Load = list[tuple[int, tuple[TaskSpec, Sequence[str]]]]


def split_batch(batch: Batch, *, max_texts: int) -> list[Load]:
    """Cut a batch into loads of at most `max_texts` texts, in order.

    A group of texts stays together unless it is larger than that. One without texts is kept: its
    task is still to be checked.
    """
    loads: list[Load] = []
    room = 0
    for place, (spec, texts) in enumerate(batch):
        for start in range(0, max(len(texts), 1), max_texts):
            part = texts[start : start + max_texts]
            if len(part) > room or not loads:
                loads.append([])
                room = max_texts
            loads[-1].append((place, (spec, part)))
            room -= len(part)
    return loads
