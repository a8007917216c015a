"""Keeps one verifier child for this process: starts it when needed, and again if it was lost.

After a fork, the new process starts a child of its own.
"""

import os
from collections.abc import Sequence

import msgspec

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks import process
from swarm_tasks.pipe import Ready, Request, decode_reply, encode_message
from swarm_tasks.process import ChildDiedError, ChildProcess

# Importing the libraries takes a second, and several on a machine that is busy with other things.
_START_DEADLINE_S = 60.0


class ChildKeeper:
    """Holds one verifier child. Not thread-safe: callers hold a lock while they use the child.

    `deadline_s` is the time limit for each step of a request: making a task or scoring a text.
    """

    def __init__(self, *, deadline_s: float) -> None:
        self._deadline_s = deadline_s
        self._child: ChildProcess | None = None
        self._owner_pid = os.getpid()
        self._isolation: frozenset[str] = frozenset()

    @property
    def child(self) -> ChildProcess:
        """The child, started if there is none.

        Raises RefusedError VERIFIER_FAILED if it cannot be started.
        """
        if self._child is not None and self._owner_pid != os.getpid():
            # After a fork, as in a Celery worker, the child belongs to the parent process.
            self._child.forget()
            self._child = None
        if self._child is None:
            self._owner_pid = os.getpid()
            self._child = self._start()
        return self._child

    @property
    def isolation(self) -> frozenset[str]:
        """Names of the child's active protections. The child is started if there is none.

        Raises RefusedError VERIFIER_FAILED if it cannot be started.
        """
        assert self.child
        return self._isolation

    def send(self, request: Request, steps: Sequence[float] = ()) -> ChildProcess:
        """Send a request to the child, and return the child.

        `steps` has the initial value of each step of the request. Before the request is sent, these
        values are written to the board. If the child has died or does not read the request, a new
        child is started, and the request is sent to it. Raises RefusedError VERIFIER_FAILED if this
        fails too, or if no child can be started.
        """
        message = encode_message(request)
        try:
            return self._try_to_send(message, steps)
        except (TimeoutError, ChildDiedError):
            self.drop()
        try:
            return self._try_to_send(message, steps)
        except (TimeoutError, ChildDiedError) as problem:
            self.drop()
            raise _failure(f"no request could be sent to the verifier child: {problem}") from None

    def drop(self) -> None:
        """End the child, if there is one.

        A child that was started before a fork belongs to the parent process. The forked process
        does not end this child; it only closes its own pipes and board.
        """
        child, self._child = self._child, None
        if child is None:
            return
        if self._owner_pid == os.getpid():
            child.kill()
        else:
            child.forget()

    def _try_to_send(self, message: bytearray, steps: Sequence[float]) -> ChildProcess:
        child = self.child
        child.board.write(steps)
        child.send(message, deadline_s=self._deadline_s)
        return child

    def _start(self) -> ChildProcess:
        if not process.SUPPORTED:
            raise _failure("the verifier child needs a POSIX system, such as WSL")
        try:
            child = ChildProcess("swarm_tasks.child", str(self._deadline_s))
        except OSError as problem:  # no memory, process or file descriptor is available
            raise _failure(f"the verifier child could not be started: {problem}") from None
        try:
            ready = decode_reply(child.receive(deadline_s=_START_DEADLINE_S), Ready)
        except (TimeoutError, ChildDiedError, msgspec.DecodeError) as problem:
            child.kill()
            raise _failure(f"the verifier child did not start: {problem}") from None
        except RefusedError:
            child.kill()
            raise
        self._isolation = frozenset(ready.isolation)
        return child


def _failure(message: str) -> RefusedError:
    return RefusedError(ErrorCode.VERIFIER_FAILED, message)
