"""Splits batches of texts into jobs and requests, and puts their results together; no I/O."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from swarm_protocol.messages import MAX_COMPLETION_CHARS, TaskSpec
from swarm_tasks.pipe import Job
from swarm_tasks.step_board import MAX_STEPS, NOT_GENERATED, NOT_SCORED

# Groups of completion texts, each with the task that its texts answer.
Batch = Sequence[tuple[TaskSpec, Sequence[str]]]

# The result of a text: the value of its step on the board, and the seconds that it took.
StepResult = tuple[float, float]

_WRONG_RESULT: StepResult = (0.0, 0.0)
_PENDING_RESULT: StepResult = (NOT_SCORED, 0.0)


class BatchProgress:
    """The progress of a batch: its pending jobs, and the results of its texts so far.

    Call `next_jobs` and then `record`, until `next_jobs` returns an empty list.
    """

    def __init__(self, batch: Batch) -> None:
        self._texts = [texts for _, texts in batch]
        self._results: list[list[StepResult]] = [[] for _ in batch]
        self._pending: deque[tuple[int, Job]] = deque(_split_into_jobs(batch))
        self._running: list[tuple[int, Job]] = []

    def next_jobs(self) -> list[Job]:
        """Take the next pending jobs, as many as fit into one request, and return them.

        The list is empty when no job is pending.
        """
        self._running = []
        free = MAX_STEPS
        while self._pending and (free := free - 1 - len(self._pending[0][1].texts)) >= 0:
            self._running.append(self._pending.popleft())
        return [job for _, job in self._running]

    def record(self, results: Iterable[StepResult]) -> None:
        """Record the results of one request, in the order of its steps.

        For each job that `next_jobs` returned, the steps are its task and then each of its texts.
        If the last results are missing, the texts without a result become pending again.
        """
        done = iter(results)
        unfinished: list[tuple[int, Job]] = []
        for position, job in self._running:
            next(done, None)
            scored = list(islice(done, len(job.texts)))
            self._results[position] += scored
            if len(scored) < len(job.texts):
                rest = msgspec.structs.replace(job, texts=job.texts[len(scored) :])
                unfinished.append((position, rest))
        self._pending.extendleft(reversed(unfinished))

    def results(self) -> list[list[StepResult]]:
        """Return the results of all texts, in one list for each task of the batch.

        A result is the value of the text's step and the seconds that it took. A text of more than
        MAX_COMPLETION_CHARS is not scored and has the value 0. A text that is still pending has the
        value NOT_SCORED.
        """
        return [
            scored if len(scored) == len(texts) else list(_fill_in(texts, scored))
            for texts, scored in zip(self._texts, self._results, strict=True)
        ]


def pending_steps(jobs: Sequence[Job]) -> list[float]:
    """Return the pending values of a request's steps (`swarm_tasks.step_board`).

    For each job, the list has a value for its task and then one for each of its texts.
    """
    steps: list[float] = []
    for job in jobs:
        steps.append(NOT_GENERATED)
        steps += [NOT_SCORED] * len(job.texts)
    return steps


def _split_into_jobs(batch: Batch) -> Iterator[tuple[int, Job]]:
    """Yield jobs that each fit into one request, with their task's position in the batch.

    Texts of more than MAX_COMPLETION_CHARS are left out.
    """
    for position, (spec, texts) in enumerate(batch):
        readable = [
            text if text.isascii() else _make_readable(text)
            for text in texts
            if len(text) <= MAX_COMPLETION_CHARS
        ]
        for start in range(0, len(readable), MAX_STEPS - 1):
            part = readable[start : start + MAX_STEPS - 1]
            yield position, Job(spec.dataset, spec.config, spec.seed, spec.index, part)


def _make_readable(text: str) -> str:
    """Return the text with lone surrogates replaced, because UTF-8 cannot encode them."""
    return text.encode(errors="replace").decode()


def _fill_in(texts: Sequence[str], results: Sequence[StepResult]) -> Iterator[StepResult]:
    scored = iter(results)
    for text in texts:
        yield next(scored, _PENDING_RESULT) if len(text) <= MAX_COMPLETION_CHARS else _WRONG_RESULT


# A part of a batch: groups of texts, each with its position in the batch.
Chunk = list[tuple[int, tuple[TaskSpec, Sequence[str]]]]


def split_batch(batch: Batch, *, max_texts: int) -> list[Chunk]:
    """Split a batch into chunks of at most `max_texts` texts, in order.

    The texts of a task stay together unless it has more than `max_texts`. Tasks without texts are
    kept, because the verifier checks the specs of all tasks.
    """
    chunks: list[Chunk] = []
    free = 0
    for position, (spec, texts) in enumerate(batch):
        for start in range(0, max(len(texts), 1), max_texts):
            part = texts[start : start + max_texts]
            if len(part) > free or not chunks:
                chunks.append([])
                free = max_texts
            chunks[-1].append((position, (spec, part)))
            free -= len(part)
    return chunks
