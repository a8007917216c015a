"""One child process, its pipes and its step board: start, send, receive, kill.

POSIX only (on Windows, run in WSL). Started by `subprocess`, because `multiprocessing` refuses to
work inside a Celery worker.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

from swarm_tasks.pipe import LENGTH_BYTES, read_length
from swarm_tasks.step_board import StepBoard, open_memory

# Whether this system has what a child needs: native Windows has not, WSL has.
SUPPORTED = os.name == "posix"

_MAX_STDERR_BYTES = 4096
_READ_BYTES = 1 << 16
# Replies are short. Only a child under an attacker's control would send more, to use up memory.
_MAX_REPLY_BYTES = 1 << 22

# The only variables that the child gets from its parent: it may need them to find its libraries.
_INHERITED = ("PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_FIXED = {
    # Some generators iterate over sets: the same spec must give the same question everywhere.
    "PYTHONHASHSEED": "0",
    "LANG": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ChildDiedError(Exception):
    """The child ended unexpectedly; the message has its status and the end of its stderr."""


class ChildProcess:
    """A process `python -m MODULE` with pipes for messages and a StepBoard. Not thread-safe.

    The module gets the file descriptor of the board's memory as its last argument.
    """

    def __init__(self, module: str, *arguments: str) -> None:
        memory = open_memory()
        try:
            self.board = StepBoard(memory)
            self._process = subprocess.Popen(
                # -s: no packages of the user's home. -P: nothing from the current folder.
                [sys.executable, "-s", "-P", "-m", module, *arguments, str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[memory],
                env=child_environment(),
                start_new_session=True,  # only the parent handles Ctrl-C in the terminal
            )
        finally:
            os.close(memory)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._to_child = self._process.stdin
        self._from_child = self._process.stdout
        self._errors = self._process.stderr
        self._received = bytearray()
        self._stderr_tail = b""
        os.set_blocking(self._to_child.fileno(), False)
        self._writable = select.poll()
        self._writable.register(self._to_child, select.POLLOUT)
        self._poll = select.poll()
        self._poll.register(self._from_child, select.POLLIN)
        self._poll.register(self._errors, select.POLLIN)

    @property
    def pid(self) -> int:
        """The child's process id, which is also the id of its process group."""
        return self._process.pid

    def send(self, message: bytes | bytearray, *, deadline_s: float) -> None:
        """Write `message`, which has its length prefix, to a child that waits for a request.

        Raises TimeoutError if the pipe does not take the whole message within `deadline_s` seconds,
        which means that the child does not read. Raises ChildDiedError if the child has ended.
        """
        give_up_at = time.monotonic() + deadline_s
        rest = memoryview(message)
        while rest:
            try:
                rest = rest[os.write(self._to_child.fileno(), rest) :]
            except BlockingIOError:
                left = give_up_at - time.monotonic()
                if left <= 0:
                    raise TimeoutError(f"nothing was read within {deadline_s:g} s") from None
                self._writable.poll(left * 1000)
            except OSError:
                raise self._death() from None

    def receive(self, *, deadline_s: float) -> bytes:
        """Return the child's next message, without its length prefix.

        Raises TimeoutError if the whole message does not arrive within `deadline_s` seconds, and
        ChildDiedError when the child has ended, or was ended because its message is too long.
        """
        give_up_at = time.monotonic() + deadline_s
        while (end := self._end_of_message()) > len(self._received):
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer within {deadline_s:g} s")
            for descriptor, _ in self._poll.poll(left * 1000):
                self._read(descriptor)
        message = bytes(self._received[LENGTH_BYTES:end])
        del self._received[:end]
        return message

    def kill(self) -> None:
        """Kill the child's process group, wait for the child, and close the pipes and the board."""
        self._end()
        self.forget()

    def forget(self) -> None:
        """Close this process's pipes and board without ending the child."""
        for pipe in (self._to_child, self._from_child, self._errors):
            with contextlib.suppress(OSError):
                pipe.close()
        self.board.close()

    def _end(self) -> int:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()

    def _end_of_message(self) -> int:
        """Return the size of the message that is arriving, including its length prefix.

        If the prefix has not arrived yet, return LENGTH_BYTES. If the message is too long, end the
        child and raise ChildDiedError.
        """
        if len(self._received) < LENGTH_BYTES:
            return LENGTH_BYTES
        length = read_length(self._received[:LENGTH_BYTES])
        if length > _MAX_REPLY_BYTES:
            raise self._death()
        return LENGTH_BYTES + length

    def _read(self, descriptor: int) -> None:
        """Read what has arrived from the child at a pipe, which is its standard output or error.

        Standard error is read because a full pipe would stop the child; its last bytes are kept.
        Raises ChildDiedError if the child has closed its standard output.
        """
        chunk = os.read(descriptor, _READ_BYTES)
        if descriptor == self._from_child.fileno():
            if not chunk:
                raise self._death()
            self._received += chunk
        elif chunk:
            self._stderr_tail = (self._stderr_tail + chunk)[-_MAX_STDERR_BYTES:]
        else:
            self._poll.unregister(descriptor)

    def _death(self) -> ChildDiedError:
        """End the child's process group, and return an error that says how the child ended."""
        code = self._end()
        os.set_blocking(self._errors.fileno(), False)
        rest = self._errors.read() or b""
        tail = (self._stderr_tail + rest)[-_MAX_STDERR_BYTES:].decode(errors="replace").strip()
        return ChildDiedError(f"the verifier child ended with status {code}: {tail or 'silently'}")


def child_environment() -> dict[str, str]:
    """Return the child's whole environment: fixed variables, and the parent's library paths."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **_FIXED}
