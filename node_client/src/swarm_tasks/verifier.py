"""The verifier: makes tasks and scores answers in a child process that can be killed.

Answers are strangers' text and verifiers are code that was not written for such. So both meet only
in `swarm_tasks.child`: without secrets, network or files, under limits, on allowed datasets.
"""

import functools
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Self

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR, check_config, check_spec
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch, Progress, Trial, lay_out_steps
from swarm_tasks.board import (
    MAX_STEPS,
    NO_ANSWER,
    SOLVED,
    TIMEOUT,
    UNMADE,
    UNSCORED,
    VERIFIER_ERROR,
    count_done,
)
from swarm_tasks.keeper import ChildKeeper
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.limits import Limits
from swarm_tasks.pipe import (
    Draw,
    Drawn,
    Draws,
    Job,
    Made,
    Sampled,
    SampleRequest,
    Scored,
    ScoreRequest,
    Wanted,
    decode_reply,
)
from swarm_tasks.process import ChildDiedError, ChildProcess
from swarm_tasks.unmade import UnmadeError, UnposedError, not_made, posing

DEADLINE_S = 5.0
MEMORY_BYTES = 1 << 30
DRAW_ATTEMPTS = 256
_DRAW_BATCH = 8
_MAX_DRAWS = MAX_STEPS // _DRAW_BATCH
# How often within a deadline the parent looks whether the child came on.
_LOOKS = 8
# What a text that loses the child is charged beyond its own time: a new child has to start.
_RESTART_S = 1.0

Reason = Literal["right", "partial", "wrong", "no_answer", "timeout", "verifier_error"]
_REASONS: dict[float, Reason] = {
    NO_ANSWER: "no_answer",
    TIMEOUT: "timeout",
    VERIFIER_ERROR: "verifier_error",
}


@dataclass(frozen=True)
class DrawnTask:
    """A task that was drawn for a part, with its question."""

    spec: TaskSpec
    question: str


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth: `score` in [0, 1], and why."""

    score: float
    reason: Reason

    @property
    def solved(self) -> bool:
        """Whether the answer counts as right."""
        return self.score >= SOLVED

    @property
    def failed(self) -> bool:
        """Whether the verifier hung or failed on the answer, so that its score says nothing."""
        return self.reason in ("timeout", "verifier_error")


@dataclass(frozen=True)
class Attempt:
    """What came of scoring an answer in limited time.

    `verdict` is None when the answer was not reached, or put off because it takes too long;
    `seconds` is what it cost.
    """

    verdict: Verdict | None
    seconds: float


class StreamPlace(NamedTuple):
    """Where a task is in a keyed stream."""

    dataset: str
    config: Config
    counter: int


class Verifier:
    """Makes questions and scores answers. Thread-safe; one request at a time.

    The child is started by the first request and again whenever it was lost. A context manager;
    without one, call `close`.

    `deadline_s` bounds the seconds for making one task and for scoring one answer, `memory_bytes`
    the child's address space.
    """

    def __init__(self, *, deadline_s: float = DEADLINE_S, memory_bytes: int = MEMORY_BYTES) -> None:
        self._deadline_s = deadline_s
        self._lock = threading.Lock()
        self._keeper = ChildKeeper(deadline_s=deadline_s, memory_bytes=memory_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> frozenset[str]:
        """Names of the protections that took hold in the child (`swarm_tasks.child.sandbox`)."""
        with self._lock:
            return self._keeper.isolation

    def close(self) -> None:
        """End the child. A later request starts a new one."""
        with self._lock:
            self._keeper.drop()

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        """Return the `counter`-th task of a keyed stream, the same one at every call.

        Each counter owns DRAW_ATTEMPTS indices; the first one whose question can be made and
        belongs to `part` is the task. The key stays in this process.

        Raises RefusedError: TASK_DATASET, TASK_CONFIG (also when the configuration knows so few
        questions that none belongs to the part) or VERIFIER_FAILED.
        """
        check_config(dataset, config)
        place = StreamPlace(dataset, config, counter)
        for start in range(0, DRAW_ATTEMPTS, _DRAW_BATCH):
            draw = _lay_out_draw(place, start, key=key, part=part, seed=seed)
            made = self._make(draw, Made, steps=_DRAW_BATCH)
            if task := _read_draw(place, made, seed=seed):
                return task
        raise RefusedError(
            ErrorCode.TASK_CONFIG,
            f"none of {DRAW_ATTEMPTS} questions of {dataset} belongs to the part {part}: this"
            " configuration knows too few different questions, widen its ranges",
        )

    def draw_many(
        self, places: Sequence[StreamPlace], *, key: bytes, part: Part, seed: int
    ) -> list[DrawnTask]:
        """Return the tasks at these places of a keyed stream, as `draw` does one by one.

        One request asks for as many as fit on the board, so most cost no trip to the child and
        back. Raises RefusedError as `draw` does, for the first task that cannot be made.
        """
        for place in places:
            check_config(place.dataset, place.config)
        tasks: list[DrawnTask] = []
        for first in range(0, len(places), _MAX_DRAWS):
            some = places[first : first + _MAX_DRAWS]
            draws = [_lay_out_draw(place, 0, key=key, part=part, seed=seed) for place in some]
            try:
                made = self._make(Draws(draws), Drawn, steps=len(draws) * _DRAW_BATCH).made
            except RefusedError:
                made = [Made(None, "")] * len(draws)
            tasks += [
                _read_draw(place, found, seed=seed)
                or self.draw(key=key, part=part, seed=seed, **place._asdict())
                for place, found in zip(some, made, strict=True)
            ]
        return tasks

    def question(self, spec: TaskSpec) -> str:
        """Return the spec's question.

        Raises RefusedError: TASK_DATASET, TASK_CONFIG, TASK_FOREIGN (another generator version) or
        VERIFIER_FAILED; UnmadeError where that was the generator's fault.
        """
        check_spec(spec)
        return self._make(_lay_out_one(spec), Made, steps=1).question

    def questions(self, specs: Sequence[TaskSpec]) -> list[str]:
        """Return the questions of up to MAX_STEPS specs, in order, in one request to the child.

        Raises UnposedError for one that `question` refuses; the others can then be asked for again.
        Raises RefusedError VERIFIER_FAILED when there is no child to ask.
        """
        for place, spec in enumerate(specs):
            with posing(place):
                check_spec(spec)
        draws = [_lay_out_one(spec) for spec in specs]
        try:
            made = self._make(Draws(draws), Drawn, steps=len(draws)).made
        except UnmadeError as problem:
            raise UnposedError(min(problem.place, len(specs) - 1), problem) from None
        if len(made) != len(specs):
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "the verifier child left tasks out")
        questions: list[str] = []
        for place, (spec, found) in enumerate(zip(specs, made, strict=True)):
            with posing(place):
                questions.append(found.question if found.index is not None else self.question(spec))
        return questions

    def sample(
        self, *, dataset: str, config: Config, seed: int, indices: Sequence[int]
    ) -> list[int]:
        """Return the digests of the questions at up to MAX_STEPS indices; without those indices at
        which the generator raises.

        Raises RefusedError: TASK_DATASET, TASK_CONFIG or VERIFIER_FAILED.
        """
        check_config(dataset, config)
        sample = SampleRequest(dataset, config, seed, list(indices))
        return self._make(sample, Sampled, steps=len(sample.indices)).digests

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

        What a text answers is read by `rules`, which a season fixes. A text that hangs or breaks
        the verifier costs its own verdict only.

        Raises RefusedError as `question` does, for the first task that cannot be made; then no
        verdict is returned at all.
        """
        limits = Limits(math.inf, self._deadline_s)
        trials = self._try(batch, rules, limits)
        return [[_verdict(worth) for worth, _ in group] for group in trials]

    def score_some(
        self,
        batch: Batch,
        *,
        until: float,
        text_s: float = DEADLINE_S,
        rules: AnswerRules = AnswerRules.EXACT,
    ) -> list[list[Attempt]]:
        """Score as many texts as there is time for, in order, and say what each of them cost.

        None is begun after `until`, a time of `time.monotonic`. A text may take `text_s` seconds,
        at most the verifier's deadline: one that needs longer is put off if it is less than that.

        Raises RefusedError as `score_many` does.
        """
        limits = Limits(until, min(text_s, self._deadline_s))
        trials = self._try(batch, rules, limits)
        return [[_attempt(worth, seconds) for worth, seconds in group] for group in trials]

    def _try(self, batch: Batch, rules: AnswerRules, limits: Limits) -> list[list[Trial]]:
        for spec, _ in batch:
            check_spec(spec)
        progress = Progress(batch)
        with self._lock:
            while limits.left_s > 0 and (jobs := progress.take_jobs()):
                progress.note(self._score_jobs(jobs, rules, limits))
        return progress.result()

    def _score_jobs(self, jobs: list[Job], rules: AnswerRules, limits: Limits) -> list[Trial]:
        """Return what came of the steps of one request, up to the one that lost the child."""
        steps = lay_out_steps(jobs)
        child = self._keeper.send(ScoreRequest(jobs, rules, limits.left_s), steps)
        try:
            self._await_reply(child, Scored, len(steps), text_s=limits.text_s)
            trials, pending = _read_trials(child, len(steps))
            if pending is not None and limits.left_s > 0:
                raise ChildDiedError("the verifier child left steps out")
        except RefusedError as problem:
            raise not_made(problem) from None
        except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
            trials, pending = _read_trials(child, len(steps))
            self._keeper.drop()
            if pending == UNMADE:
                raise not_made(problem) from None
            if pending is not None:
                trials.append(self._name_fault(problem, text_s=limits.text_s))
        return trials

    def _name_fault(self, problem: Exception, *, text_s: float) -> Trial:
        """Return what came of the text that a lost child was busy with."""
        if not isinstance(problem, TimeoutError):
            return VERIFIER_ERROR, _RESTART_S
        return TIMEOUT if text_s >= self._deadline_s else UNSCORED, text_s + _RESTART_S

    def _make(
        self, request: Draw | Draws | SampleRequest, wanted: type[Wanted], *, steps: int
    ) -> Wanted:
        with self._lock:
            child = self._keeper.send(request, [UNMADE] * steps)
            try:
                return self._await_reply(child, wanted, steps, text_s=self._deadline_s)
            except RefusedError as problem:
                raise not_made(problem) from None
            except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
                done = count_done(child.board.read(steps))
                self._keeper.drop()
                raise not_made(problem, place=done) from None

    def _await_reply(
        self, child: ChildProcess, wanted: type[Wanted], steps: int, *, text_s: float
    ) -> Wanted:
        """Wait for the reply to a request whose texts may take `text_s`, its tasks the deadline.

        A step hangs when it is still the same after so many looks.
        """
        done = same = 0
        limit_s = self._deadline_s  # a request begins with a task
        while same < _LOOKS:
            try:
                raw = child.receive(deadline_s=limit_s / _LOOKS)
            except TimeoutError:
                board = child.board.read(steps)
                before, done = done, count_done(board)
                same = same + 1 if done == before else 0
                limit_s = text_s if UNSCORED in board[done : done + 1] else self._deadline_s
            else:
                return decode_reply(raw, wanted)
        raise TimeoutError(f"no answer within {limit_s:g} s")


def _lay_out_one(spec: TaskSpec) -> Draw:
    return Draw(spec.dataset, spec.config, spec.seed, [spec.index], None)


def _lay_out_draw(place: StreamPlace, start: int, *, key: bytes, part: Part, seed: int) -> Draw:
    """Return a request for the place's attempts from `start` on, as many as one request tries."""
    first = place.counter * DRAW_ATTEMPTS + start
    indices = [
        keyed_index(key=key, part=part, dataset=place.dataset, counter=attempt)
        for attempt in range(first, first + _DRAW_BATCH)
    ]
    return Draw(place.dataset, place.config, seed, indices, part)


def _read_draw(place: StreamPlace, made: Made, *, seed: int) -> DrawnTask | None:
    """Return the task that a draw made, if any of its questions belonged to the part."""
    if made.index is None:
        return None
    spec = TaskSpec(place.dataset, place.config, seed, made.index, GENERATOR)
    return DrawnTask(spec, made.question)


def _read_trials(child: ChildProcess, count: int) -> tuple[list[Trial], float | None]:
    """Return what came of the steps that were done, and the first one that was not, if any."""
    steps = child.board.read(count)
    done = count_done(steps)
    trials = list(zip(steps[:done], child.board.read_seconds(done), strict=True))
    return trials, steps[done] if done < count else None


@functools.lru_cache(maxsize=1024)
def _verdict(worth: float) -> Verdict:
    """Return the verdict of a step that was done; a number that means nothing is an error."""
    if not 0 <= worth <= 1:
        return Verdict(0.0, _REASONS.get(worth, "verifier_error"))
    if worth >= SOLVED:
        return Verdict(worth, "right")
    return Verdict(worth, "partial" if worth > 0 else "wrong")


def _attempt(worth: float, seconds: float) -> Attempt:
    return Attempt(None if worth == UNSCORED else _verdict(worth), seconds)
