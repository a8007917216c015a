"""The verifier: makes tasks and scores answers in a child process that can be killed.

Answers are untrusted text, and reasoning-gym was not written for such text. So they are scored only
in `swarm_tasks.child`: without secrets or network, with limits, and for allowed datasets.
"""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR, check_config, check_spec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import digest_question
from swarm_tasks.batches import Batch, BatchProgress, StepResult, pending_steps
from swarm_tasks.generation_errors import GenerationError, NoQuestionError, as_generation_error
from swarm_tasks.keeper import ChildKeeper
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.pipe import (
    Draw,
    Drawn,
    Draws,
    Failed,
    GeneratedTask,
    Job,
    ReplyT,
    Scored,
    ScoreRequest,
    decode_reply,
)
from swarm_tasks.process import ChildDiedError, ChildProcess
from swarm_tasks.step_board import (
    MAX_STEPS,
    NOT_GENERATED,
    NOT_SCORED,
    TIMEOUT,
    VERIFIER_ERROR,
    count_done,
)
from swarm_tasks.verdicts import Attempt, Verdict, read_attempt, read_verdict

DEADLINE_S = 5.0
DRAW_ATTEMPTS = 256
_DRAW_BATCH = 8
# So that the questions, of 27 kB at most, fit into one reply of the child (4 MiB).
_MAX_DRAWS = MAX_STEPS // _DRAW_BATCH
# How often within a deadline the parent checks whether the child has done another step.
_POLLS = 8
# Seconds that are added to the cost of a text that loses the child: a new child has to start.
_RESTART_S = 1.0


@dataclass(frozen=True)
class DrawnTask:
    """A task with its question."""

    spec: TaskSpec
    question: str


class StreamPosition(NamedTuple):
    """The position of a task in a keyed stream (`Verifier.draw`)."""

    dataset: str
    config: Config
    counter: int


class Verifier:
    """Makes questions and scores answers, one request at a time. Thread-safe.

    The first request starts the verifier child, and a later request replaces a child that died or
    hung. Use the verifier as a context manager, which ends the child, or call `close`.

    `deadline_s` is the time limit for making one task, and for scoring one answer.
    """

    def __init__(self, *, deadline_s: float = DEADLINE_S) -> None:
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._keeper = ChildKeeper(deadline_s=deadline_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> frozenset[str]:
        """Names of the child's active protections (`swarm_tasks.child.sandbox`).

        The child is started if there is none. Raises RefusedError VERIFIER_FAILED if this fails.
        """
        with self._lock:
            return self._keeper.isolation

    def close(self) -> None:
        """End the child. A later request starts a new one."""
        with self._lock:
            self._keeper.drop()

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        """Return task number `counter` of a keyed stream, which the other arguments determine.

        For each task, DRAW_ATTEMPTS indices are computed from the key. The child, which does not
        get the key, tries them in order, several per request, until one gives a question that
        belongs to `part` by its text.

        Raises RefusedError with code TASK_DATASET, TASK_CONFIG (also used if no index gives such a
        question) or VERIFIER_FAILED. The error is a GenerationError if the generator hangs, ends
        the child, or raises at all indices of a request.
        """
        check_config(dataset, config)
        position = StreamPosition(dataset, config, counter)
        for start in range(0, DRAW_ATTEMPTS, _DRAW_BATCH):
            made = self._make_one(_draw_request(position, start, key=key, part=part, seed=seed))
            if task := _drawn_task(position, made, seed=seed):
                return task
        raise RefusedError(
            ErrorCode.TASK_CONFIG,
            f"none of {DRAW_ATTEMPTS} questions of {dataset} belongs to the part {part}: this"
            " configuration has too few different questions, widen its ranges",
        )

    def draw_many(
        self, positions: Sequence[StreamPosition], *, key: bytes, part: Part, seed: int
    ) -> list[DrawnTask]:
        """Return the tasks at these positions of keyed streams, the same as `draw` returns.

        This is faster than `draw`, because one request to the child asks for many tasks. Raises
        RefusedError as `draw` does if any of the tasks cannot be made.
        """
        for position in positions:
            check_config(position.dataset, position.config)
        tasks: list[DrawnTask] = []
        for first in range(0, len(positions), _MAX_DRAWS):
            some = positions[first : first + _MAX_DRAWS]
            draws = [_draw_request(position, 0, key=key, part=part, seed=seed) for position in some]
            try:
                made = self._make(draws)
            except RefusedError as problem:
                made = [problem for _ in draws]
            tasks += [
                _drawn_task(position, found, seed=seed)
                or self.draw(key=key, part=part, seed=seed, **position._asdict())
                for position, found in zip(some, made, strict=True)
            ]
        return tasks

    def question(self, spec: TaskSpec) -> str:
        """Return the spec's question.

        Raises RefusedError with code TASK_DATASET, TASK_CONFIG, TASK_FOREIGN (the spec names
        another generator version) or VERIFIER_FAILED. The error is a GenerationError if the
        generator failed or hung.
        """
        check_spec(spec)
        return self._make_one(_question_request(spec)).question

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        """Return the questions of up to MAX_STEPS specs, in order, in one request to the child.

        Raises NoQuestionError if a question cannot be made; its `position` says which one, so that
        callers can request the others. Raises RefusedError VERIFIER_FAILED if no child can be used.
        """
        for position, spec in enumerate(specs):
            try:
                check_spec(spec)
            except RefusedError as refusal:
                raise NoQuestionError(position, refusal) from None
        try:
            made = self._make([_question_request(spec) for spec in specs])
        except GenerationError as problem:
            raise NoQuestionError(min(problem.position, len(specs) - 1), problem) from None
        questions: list[str] = []
        for position, found in enumerate(made):
            if isinstance(found, RefusedError):
                raise NoQuestionError(position, found)
            questions.append(found.question)
        return questions

    def sample_digests(
        self, *, dataset: str, config: Config, seed: int, indices: Sequence[int]
    ) -> list[int]:
        """Return the digests (`asked.digest_question`) of the questions at these indices.

        An index at which the generator raises is left out of the result. Raises RefusedError with
        code TASK_DATASET, TASK_CONFIG or VERIFIER_FAILED. The error is a GenerationError if the
        generator hangs or ends the child.
        """
        check_config(dataset, config)
        digests: list[int] = []
        draws = [Draw(dataset, config, seed, [index], None) for index in indices]
        for first in range(0, len(draws), _MAX_DRAWS):
            for made in self._make(draws[first : first + _MAX_DRAWS]):
                if isinstance(made, GeneratedTask):
                    digests.append(digest_question(made.question))
                elif not isinstance(made, GenerationError):
                    raise made
        return digests

    def score(
        self, spec: TaskSpec, texts: Sequence[str], *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[Verdict]:
        """Return one verdict for each completion text, in order (`score_many`)."""
        (verdicts,) = self.score_many([(spec, texts)], rules=rules)
        return verdicts

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        """Return one verdict for each completion text of each task, in order.

        `rules` are the rules for finding the answer in a text; each season fixes them. A text that
        hangs the verifier or makes it fail affects only its own verdict.

        Raises RefusedError as `question` does if any of the tasks cannot be made.
        """
        results = self._score_batch(batch, rules, until=float("inf"), text_s=self._deadline_s)
        return [[read_verdict(value) for value, _ in group] for group in results]

    def score_until(
        self,
        batch: Batch,
        *,
        until: float,
        text_s: float = DEADLINE_S,
        rules: AnswerRules = AnswerRules.EXACT,
    ) -> list[list[Attempt]]:
        """Score as many texts as there is time for, in order, and return an attempt for each text.

        No text is started after `until`, a time of `time.monotonic`. Texts that are not started get
        no verdict. A text may take `text_s` seconds, but not more than the verifier's deadline. If
        it takes longer, it gets the verdict `timeout` if `text_s` is at least the deadline,
        otherwise no verdict. Raises RefusedError as `score_many` does.
        """
        results = self._score_batch(batch, rules, until=until, text_s=min(text_s, self._deadline_s))
        return [[read_attempt(value, seconds) for value, seconds in group] for group in results]

    def _score_batch(
        self, batch: Batch, rules: AnswerRules, *, until: float, text_s: float
    ) -> list[list[StepResult]]:
        for spec, _ in batch:
            check_spec(spec)
        progress = BatchProgress(batch)
        with self._lock:
            while time.monotonic() < until and (jobs := progress.next_jobs()):
                progress.record(self._score_jobs(jobs, rules, until=until, text_s=text_s))
        return progress.results()

    def _score_jobs(
        self, jobs: list[Job], rules: AnswerRules, *, until: float, text_s: float
    ) -> list[StepResult]:
        """Let the child do the steps of one request, and return their results in order.

        Steps that were not started before `until` have no result. If the child dies while it scores
        a text, or takes longer than `text_s`, the child is ended, and the results end with one for
        this text. Callers hold the lock. Raises RefusedError if a question cannot be made.
        """
        steps = pending_steps(jobs)
        child = self._keeper.send(ScoreRequest(jobs, rules, until - time.monotonic()), steps)
        try:
            self._await_reply(child, Scored, len(steps), text_s=text_s)
            results, pending = child.board.read_results(len(steps))
            if pending is not None and time.monotonic() < until:
                raise ChildDiedError("the verifier child skipped steps")
        except RefusedError as problem:
            raise as_generation_error(problem) from None
        except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
            results, pending = child.board.read_results(len(steps))
            self._keeper.drop()
            if pending == NOT_GENERATED:
                raise as_generation_error(problem) from None
            if pending is not None:
                results.append(self._lost_result(problem, text_s=text_s))
        return results

    def _lost_result(self, problem: Exception, *, text_s: float) -> StepResult:
        """Return the result of the text at which the child failed or exceeded `text_s`."""
        if not isinstance(problem, TimeoutError):
            return VERIFIER_ERROR, _RESTART_S
        return TIMEOUT if text_s >= self._deadline_s else NOT_SCORED, text_s + _RESTART_S

    def _make_one(self, draw: Draw) -> GeneratedTask:
        (made,) = self._make([draw])
        if isinstance(made, RefusedError):
            raise made
        return made

    def _make(self, draws: list[Draw]) -> list[GeneratedTask | RefusedError]:
        """Return the task or the error of each draw.

        Raises RefusedError if the whole request fails, for example because the child dies or hangs.
        """
        steps = sum(len(draw.indices) for draw in draws)
        with self._lock:
            child = self._keeper.send(Draws(draws), [NOT_GENERATED] * steps)
            try:
                made = self._await_reply(child, Drawn, steps, text_s=self._deadline_s).made
                if len(made) != len(draws):
                    raise ChildDiedError("the verifier child skipped tasks")
            except RefusedError as problem:
                raise as_generation_error(problem) from None
            except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
                done = count_done(child.board.read(steps))
                self._keeper.drop()
                raise as_generation_error(problem, position=done) from None
        return [
            as_generation_error(found.refusal) if isinstance(found, Failed) else found
            for found in made
        ]

    def _await_reply(
        self, child: ChildProcess, expected: type[ReplyT], steps: int, *, text_s: float
    ) -> ReplyT:
        """Wait for the reply to a request of `steps` steps, and return it.

        A step that scores a text may take `text_s` seconds, and one that makes a task as long as
        the verifier's deadline. Raises TimeoutError if a step takes longer.
        """
        done = same = 0
        limit_s = self._deadline_s  # a request begins with a task
        while same < _POLLS:
            try:
                raw = child.receive(deadline_s=limit_s / _POLLS)
            except TimeoutError:
                board = child.board.read(steps)
                before, done = done, count_done(board)
                same = same + 1 if done == before else 0
                limit_s = text_s if NOT_SCORED in board[done : done + 1] else self._deadline_s
            else:
                return decode_reply(raw, expected)
        raise TimeoutError(f"no answer within {limit_s:g} s")


def _question_request(spec: TaskSpec) -> Draw:
    return Draw(spec.dataset, spec.config, spec.seed, [spec.index], None)


def _draw_request(
    position: StreamPosition, start: int, *, key: bytes, part: Part, seed: int
) -> Draw:
    """Return a request to try _DRAW_BATCH of the DRAW_ATTEMPTS indices of a stream position.

    `start` is the number of the first of these indices, counted from 0.
    """
    first = position.counter * DRAW_ATTEMPTS + start
    indices = [
        keyed_index(key=key, part=part, dataset=position.dataset, counter=attempt)
        for attempt in range(first, first + _DRAW_BATCH)
    ]
    return Draw(position.dataset, position.config, seed, indices, part)


def _drawn_task(
    position: StreamPosition, made: GeneratedTask | RefusedError, *, seed: int
) -> DrawnTask | None:
    """Return a draw's task; None if the draw failed or found no question of the requested part."""
    if isinstance(made, RefusedError) or made.index is None:
        return None
    spec = TaskSpec(position.dataset, position.config, seed, made.index, GENERATOR)
    return DrawnTask(spec, made.question)
