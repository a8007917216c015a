"""Answer the verifier's requests: `python -m swarm_tasks.child DEADLINE_S MEMORY_BYTES`.

Steps: take the pipes away from everybody else in the process, lock the process in, say `Ready`,
then serve one line after the other until the parent closes the pipe.

The parent kills a child that overruns the deadline. So that a child whose parent died meanwhile
does not hang on either, it also sets an alarm that ends it whatever its Python code is doing;
an idle one ends when the pipe closes.
"""

import os
import signal
import sys
from typing import BinaryIO

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.child import generators
from swarm_tasks.child.sandbox import apply_sandbox
from swarm_tasks.keyspace import question_part
from swarm_tasks.pipe import (
    Draw,
    Failed,
    Line,
    Made,
    Ready,
    Request,
    Score,
    Scored,
    decode_request,
    encode_line,
)

# The parent decides first: the alarm only acts where there is no parent any more.
_ALARM_FACTOR = 1.5


class Server:
    """Serves requests over a pair of pipes, each piece of work under the alarm."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, *, deadline_s: float) -> None:
        self._requests = requests
        self._replies = replies
        self._alarm_s = deadline_s * _ALARM_FACTOR

    def say(self, line: Line) -> None:
        """Send one line at once."""
        self._replies.write(encode_line(line))
        self._replies.flush()

    def serve(self) -> None:
        """Answer every request until the parent closes the pipe."""
        for raw in self._requests:
            try:
                request = decode_request(raw)
                if isinstance(request, Draw):
                    self.say(self._draw(request))
                else:
                    self._score(request)
            except RefusedError as refusal:
                self.say(Failed(refusal.code, refusal.message))
            except Exception as problem:  # noqa: BLE001 - a generator may raise anything
                self.say(Failed(ErrorCode.VERIFIER_FAILED, f"{type(problem).__name__}: {problem}"))
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def _draw(self, request: Draw) -> Made:
        for index in request.indices:
            signal.setitimer(signal.ITIMER_REAL, self._alarm_s)
            question = _make_question(request, index)
            if request.part in (None, question_part(question)):
                return Made(index, question)
        return Made(None, "")

    def _score(self, request: Score) -> None:
        signal.setitimer(signal.ITIMER_REAL, self._alarm_s)
        self.say(Made(request.index, _make_question(request, request.index)))
        for text in request.texts:
            signal.setitimer(signal.ITIMER_REAL, self._alarm_s)
            self.say(_score_one(request, text))


def _make_question(request: Request, index: int) -> str:
    entry = generators.make_entry(request.dataset, request.config, seed=request.seed, index=index)
    return str(entry["question"])


def _score_one(request: Score, text: str) -> Scored:
    try:
        score = generators.score_text(
            request.dataset, request.config, seed=request.seed, index=request.index, text=text
        )
    except Exception as problem:  # noqa: BLE001 - a verifier may raise anything on a wrong answer
        print(f"{request.dataset} {request.index}: {problem!r}"[:500], file=sys.stderr)  # noqa: T201
        return Scored(0.0, "verifier_error")
    return Scored(0.0, "no_answer") if score is None else Scored(score, "scored")


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Return the protocol's pipes, and leave `print` and `input` of generators without them."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


def main() -> None:
    """Lock this process in and serve."""
    deadline_s, memory_bytes = float(sys.argv[1]), int(sys.argv[2])
    requests, replies = _take_pipes()
    server = Server(requests, replies, deadline_s=deadline_s)
    installed = generators.installed_generator()
    if installed != GENERATOR:
        problem = f"{installed} is installed, the allow-list was made for {GENERATOR}"
        server.say(Failed(ErrorCode.VERIFIER_FAILED, problem))
        return
    isolation = apply_sandbox(memory_bytes=memory_bytes)
    server.say(Ready(sorted(isolation)))
    server.serve()


if __name__ == "__main__":
    main()
