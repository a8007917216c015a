"""The verifier child's program: `python -m swarm_tasks.child DEADLINE_S BOARD`.

DEADLINE_S is the time limit for a step of a request, and BOARD the file descriptor of the step
board's memory (`swarm_tasks.step_board`). The child reserves the pipes for the protocol, enters the
sandbox, sends `Ready`, and then answers requests until the parent closes the pipe.

The parent kills a child that exceeds the time limit. The child also sets an alarm for a later time.
If the parent has died, the alarm's signal ends the child, whatever code it is running.
"""

import os
import signal
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.child import generators
from swarm_tasks.child.sandbox import apply_sandbox
from swarm_tasks.keyspace import question_part
from swarm_tasks.pipe import (
    LENGTH_BYTES,
    Draw,
    Drawn,
    Draws,
    Failed,
    GeneratedTask,
    Job,
    Message,
    Ready,
    Request,
    Scored,
    ScoreRequest,
    decode_request,
    encode_message,
    read_length,
)
from swarm_tasks.step_board import GENERATED, VERIFIER_ERROR, StepBoard

# The alarm comes later than the parent's deadline, so it acts only if there is no parent any more.
# A step begins at most _RENEW_FACTOR deadlines after the alarm was set.
_ALARM_FACTOR = 1.5
_RENEW_FACTOR = 0.25
_READ_BYTES = 1 << 16


@dataclass(frozen=True)
class ChildServer:
    """Serves requests over a pair of pipes, and writes results to a StepBoard.

    An alarm ends the process if a step of a request takes much longer than `deadline_s`.
    """

    requests: BinaryIO
    replies: BinaryIO
    board: StepBoard
    deadline_s: float

    def send(self, message: Message) -> None:
        """Write a message to the parent and flush the pipe."""
        self.replies.write(encode_message(message))
        self.replies.flush()

    def serve(self) -> None:
        """Answer every request until the parent closes the pipe."""
        while header := self.requests.read(LENGTH_BYTES):
            try:
                request = decode_request(self.requests.read(read_length(header)))
                self.send(self._answer(request))
            except Exception as problem:  # noqa: BLE001 - a generator may raise anything
                self.send(_explain(problem))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _answer(self, request: Request) -> Drawn | Scored:
        return self._draw_all(request) if isinstance(request, Draws) else self._score(request)

    def _draw_all(self, request: Draws) -> Drawn:
        """Make all draws. A draw that fails does not affect the others."""
        made: list[GeneratedTask | Failed] = []
        first = 0
        for draw in request.draws:
            made.append(self._draw(draw, first=first))
            for step in range(first, first + len(draw.indices)):
                self.board.steps[step] = GENERATED
            first += len(draw.indices)
        return Drawn(made)

    def _draw(self, draw: Draw, *, first: int) -> GeneratedTask | Failed:
        """Return the draw's first task whose question belongs to `draw.part`.

        If there is none, the result has the index None. An index at which the generator raises is
        skipped; if it raises at every index, the last error is returned. A RefusedError ends the
        draw and is returned. `first` is the first index's position on the step board.
        """
        failures: list[Exception] = []
        for step, index in enumerate(draw.indices, first):
            self._set_alarm()
            try:
                question = _open_task(draw, index).question
            except RefusedError as refusal:
                return _explain(refusal)
            except Exception as problem:  # noqa: BLE001 - a generator may raise anything
                failures.append(problem)
            else:
                if draw.part is None or draw.part is question_part(question):
                    return GeneratedTask(index, question)
            self.board.steps[step] = GENERATED
        if len(failures) == len(draw.indices):
            return _explain(failures[-1])
        return GeneratedTask(None, "")

    def _score(self, request: ScoreRequest) -> Scored:
        """Make each job's task, score its texts, and write each result to the step board.

        No text is started after the request's time is over; the remaining texts keep their initial
        value on the board. The inner loop is kept fast, because it runs for every text.
        """
        steps, seconds, clock = self.board.steps, self.board.seconds, time.monotonic
        until = clock() + request.seconds
        first = 0
        for job in request.jobs:
            renew_at = self._set_alarm()
            score_text = partial(_open_task(job, job.index).score_text, rules=request.rules)
            steps[first] = GENERATED
            now = clock()
            for step, text in enumerate(job.texts, first + 1):
                if now > until:
                    return Scored()
                if now > renew_at:
                    renew_at = self._set_alarm()
                try:
                    steps[step] = score_text(text)
                except Exception as problem:  # noqa: BLE001 - a verifier may raise anything
                    steps[step] = VERIFIER_ERROR
                    print(f"{job.dataset} {job.index}: {problem!r}"[:500], file=sys.stderr)  # noqa: T201
                began, now = now, clock()
                seconds[step] = now - began
            first += 1 + len(job.texts)
        return Scored()

    def _set_alarm(self) -> float:
        """Restart the alarm, and return the time (`time.monotonic`) at which to restart it again.

        Not called for every text, because a call may take as long as scoring a text.
        """
        signal.setitimer(signal.ITIMER_REAL, self.deadline_s * _ALARM_FACTOR)
        return time.monotonic() + self.deadline_s * _RENEW_FACTOR


def _open_task(named: Draw | Job, index: int) -> generators.Task:
    return generators.open_task(named.dataset, named.config, seed=named.seed, index=index)


def _explain(problem: Exception) -> Failed:
    if isinstance(problem, RefusedError):
        return Failed(ErrorCode(problem.code), problem.message)
    return Failed(ErrorCode.VERIFIER_FAILED, f"{type(problem).__name__}: {problem}"[:500])


def _reserve_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the pipes for requests and replies, and detach them from standard input and output.

    After that, a generator's `print` writes to standard error, and its `input` reads nothing.
    """
    requests, replies = os.fdopen(os.dup(0), "rb", _READ_BYTES), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def main() -> None:
    """Enter the sandbox and serve requests.

    If the allow-list was made for another version of the library, only send `Failed`.
    """
    deadline_s, memory = float(sys.argv[1]), int(sys.argv[2])
    requests, replies = _reserve_pipes()
    board = StepBoard(memory)
    os.close(memory)
    server = ChildServer(requests, replies, board, deadline_s)
    installed = generators.installed_generator()
    if installed != GENERATOR:
        problem = f"{installed} is installed, the allow-list was made for {GENERATOR}"
        server.send(Failed(ErrorCode.VERIFIER_FAILED, problem))
        return
    server.send(Ready(sorted(apply_sandbox())))
    server.serve()


if __name__ == "__main__":
    main()
