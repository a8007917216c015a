"""The verifier: makes tasks and scores answers in a child process that can be killed.

Answers are strangers' text and verifiers are code that was not written for such. So both meet only
in `swarm_tasks.child`: without secrets, network or files, under limits, on allowed datasets.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import MAX_COMPLETION_CHARS, Config, TaskSpec
from swarm_tasks.allowlist import GENERATOR, check_config
from swarm_tasks.keyspace import Part, keyed_index
from swarm_tasks.pipe import Draw, Made, Ready, Score, Scored, Wanted, decode_reply, encode_line
from swarm_tasks.process import ChildDiedError, ChildProcess

# Verifiers give partial credit and floating sums: from here on an answer counts as right.
SOLVED = 0.99

DRAW_ATTEMPTS = 256
_DRAW_BATCH = 8
# Importing the libraries takes a second, and several on a machine that is busy with other things.
_START_DEADLINE_S = 60.0
_DEFAULT_MEMORY_BYTES = 1 << 30

Reason = Literal["right", "partial", "wrong", "no_answer", "timeout", "verifier_error"]


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


class Verifier:
    """Makes questions and scores answers. Thread-safe; one request at a time.

    The child is started by the first request and again whenever it was lost. A context manager;
    without one, call `close`.

    `deadline_s` bounds the seconds for making one task and for scoring one answer, `memory_bytes`
    the child's address space.
    """

    def __init__(
        self, *, deadline_s: float = 5.0, memory_bytes: int = _DEFAULT_MEMORY_BYTES
    ) -> None:
        self._deadline_s = deadline_s
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._child: ChildProcess | None = None
        self._owner_pid = os.getpid()
        self._isolation: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def isolation(self) -> frozenset[str]:
        """Names of the protections that took hold in the child (`swarm_tasks.child.sandbox`)."""
        with self._lock:
            self._running_child()
            return self._isolation

    def close(self) -> None:
        """End the child. A later request starts a new one."""
        with self._lock:
            self._drop_child()

    def draw(
        self, *, key: bytes, part: Part, dataset: str, config: Config, seed: int, counter: int
    ) -> DrawnTask:
        """Return the `counter`-th task of a keyed stream, the same one at every call.

        Each counter owns DRAW_ATTEMPTS indices; the first one whose question belongs to `part`
        is the task. The key stays in this process.

        Raises RefusedError: TASK_DATASET, TASK_CONFIG (also when the configuration knows so few
        questions that none belongs to the part) or VERIFIER_FAILED.
        """
        check_config(dataset, config)
        first = counter * DRAW_ATTEMPTS
        for start in range(first, first + DRAW_ATTEMPTS, _DRAW_BATCH):
            indices = [
                keyed_index(key=key, part=part, dataset=dataset, counter=attempt)
                for attempt in range(start, start + _DRAW_BATCH)
            ]
            made = self._make(Draw(dataset, config, seed, indices, part))
            if made.index is not None:
                spec = TaskSpec(dataset, config, seed, made.index, GENERATOR)
                return DrawnTask(spec, made.question)
        raise RefusedError(
            ErrorCode.TASK_CONFIG,
            f"none of {DRAW_ATTEMPTS} questions of {dataset} belongs to the part {part}: this"
            " configuration knows too few different questions, widen its ranges",
        )

    def question(self, spec: TaskSpec) -> str:
        """Return the spec's question.

        Raises RefusedError: TASK_DATASET, TASK_CONFIG, TASK_FOREIGN (another generator version) or
        VERIFIER_FAILED.
        """
        _check_spec(spec)
        draw = Draw(spec.dataset, spec.config, spec.seed, [spec.index], None)
        return self._make(draw).question

    def score(self, spec: TaskSpec, texts: Sequence[str]) -> list[Verdict]:
        """Return one verdict for each completion text, in order.

        The answer is what stands between the last `<answer>` and `</answer>`. A text that hangs
        or breaks the verifier costs its own verdict only.

        Raises RefusedError as `question` does.
        """
        _check_spec(spec)
        readable = [text.encode(errors="replace").decode() for text in texts]
        short = [text for text in readable if len(text) <= MAX_COMPLETION_CHARS]
        with self._lock:
            verdicts = iter(self._score_all(spec, short))
        too_long = Verdict(0.0, "wrong")
        return [
            next(verdicts) if len(text) <= MAX_COMPLETION_CHARS else too_long for text in readable
        ]

    def _score_all(self, spec: TaskSpec, texts: list[str]) -> list[Verdict]:
        """Score text by text; after one that lost the child, go on with the next in a new one."""
        verdicts: list[Verdict] = []
        while len(verdicts) < len(texts):
            rest = texts[len(verdicts) :]
            request = Score(spec.dataset, spec.config, spec.seed, spec.index, rest)
            self._exchange(encode_line(request), Made)
            verdicts += self._read_verdicts(len(rest))
        return verdicts

    def _read_verdicts(self, count: int) -> Iterator[Verdict]:
        """Yield verdicts until all have come or the child is lost, which is one's last."""
        for _ in range(count):
            try:
                scored = self._receive(Scored)
            except TimeoutError:
                self._drop_child()
                yield Verdict(0.0, "timeout")
                return
            except (ChildDiedError, msgspec.DecodeError):
                self._drop_child()
                yield Verdict(0.0, "verifier_error")
                return
            yield _verdict(scored)

    def _make(self, request: Draw) -> Made:
        with self._lock:
            return self._exchange(encode_line(request), Made)

    def _exchange(self, line: bytes, wanted: type[Wanted]) -> Wanted:
        """Send a request and return its first reply. A child that died idle is replaced once."""
        try:
            child = self._running_child()
            try:
                child.send(line)
            except ChildDiedError:
                self._drop_child()
                self._running_child().send(line)
            return self._receive(wanted)
        except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
            self._drop_child()
            raise RefusedError(
                ErrorCode.VERIFIER_FAILED, f"the task could not be made: {problem}"
            ) from None

    def _receive(self, wanted: type[Wanted]) -> Wanted:
        return decode_reply(self._running_child().receive(deadline_s=self._deadline_s), wanted)

    def _running_child(self) -> ChildProcess:
        """Return the child, started if there is none. Raises RefusedError VERIFIER_FAILED."""
        if self._child is not None and self._owner_pid != os.getpid():
            # After a fork (a Celery worker) the child is still the parent's: talk to an own one.
            self._child.forget()
            self._child = None
        if self._child is None:
            self._owner_pid = os.getpid()
            self._child = self._start_child()
        return self._child

    def _start_child(self) -> ChildProcess:
        child = ChildProcess("swarm_tasks.child", str(self._deadline_s), str(self._memory_bytes))
        try:
            ready = decode_reply(child.receive(deadline_s=_START_DEADLINE_S), Ready)
        except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
            child.kill()
            raise RefusedError(
                ErrorCode.VERIFIER_FAILED, f"the verifier child did not start: {problem}"
            ) from None
        except RefusedError:
            child.kill()
            raise
        self._isolation = frozenset(ready.isolation)
        return child

    def _drop_child(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if self._owner_pid == os.getpid():
            child.kill()
        else:
            child.forget()


def _check_spec(spec: TaskSpec) -> None:
    check_config(spec.dataset, spec.config)
    if spec.generator != GENERATOR:
        raise RefusedError(
            ErrorCode.TASK_FOREIGN, f"made with {spec.generator!r}, this side has {GENERATOR!r}"
        )


def _verdict(scored: Scored) -> Verdict:
    if scored.outcome != "scored":
        return Verdict(0.0, scored.outcome)
    if scored.score >= SOLVED:
        return Verdict(scored.score, "right")
    return Verdict(scored.score, "partial" if scored.score > 0 else "wrong")
