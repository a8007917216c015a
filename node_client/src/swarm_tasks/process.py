"""One child process and its pipes: start, send a line, wait for a line, kill.

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

_STDERR_KEPT_BYTES = 4096
_READ_BYTES = 1 << 16

# All that the child sees of its parent's environment: what may be needed to find its libraries.
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
    """The child ended by itself; the text says how, with the end of what it wrote to stderr."""


class ChildProcess:
    """A running `python -m MODULE` that speaks in lines. Not thread-safe."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            # -s: no packages of the user's home. -P: nothing from the current folder.
            [sys.executable, "-s", "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C in the terminal is the parent's business
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._to_child = self._process.stdin
        self._from_child = self._process.stdout
        self._errors = self._process.stderr
        self._lines = bytearray()
        self._stderr_tail = b""
        self._poll = select.poll()
        self._poll.register(self._from_child, select.POLLIN)
        self._poll.register(self._errors, select.POLLIN)

    @property
    def pid(self) -> int:
        """The child's process id, which is also its group's."""
        return self._process.pid

    def send(self, line: bytes) -> None:
        """Send one line. Raises ChildDiedError."""
        try:
            self._to_child.write(line)
            self._to_child.flush()
        except OSError:
            raise self._death() from None

    def receive(self, *, deadline_s: float) -> bytes:
        """Return the child's next line.

        Raises TimeoutError after `deadline_s` seconds and ChildDiedError.
        """
        give_up_at = time.monotonic() + deadline_s
        while (end := self._lines.find(b"\n")) < 0:
            left = give_up_at - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"no answer within {deadline_s:g} s")
            for descriptor, _ in self._poll.poll(left * 1000):
                self._read(descriptor)
        line = bytes(self._lines[:end])
        del self._lines[: end + 1]
        return line

    def kill(self) -> None:
        """End the child and all that it may have started, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self.forget()

    def forget(self) -> None:
        """Close this side's pipes and leave the child alone: it is another process's."""
        for pipe in (self._to_child, self._from_child, self._errors):
            with contextlib.suppress(OSError):
                pipe.close()

    def _read(self, descriptor: int) -> None:
        """Take what there is; stderr is read too, or a full pipe would stop the child."""
        chunk = os.read(descriptor, _READ_BYTES)
        if descriptor == self._from_child.fileno():
            if not chunk:
                raise self._death()
            self._lines += chunk
        elif chunk:
            self._stderr_tail = (self._stderr_tail + chunk)[-_STDERR_KEPT_BYTES:]
        else:
            self._poll.unregister(descriptor)

    def _death(self) -> ChildDiedError:
        """Wait for the dying child, and return how it died."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        code = self._process.wait()
        os.set_blocking(self._errors.fileno(), False)
        rest = self._errors.read() or b""
        tail = (self._stderr_tail + rest)[-_STDERR_KEPT_BYTES:].decode(errors="replace").strip()
        return ChildDiedError(f"the verifier child ended with status {code}: {tail or 'silently'}")


def child_environment() -> dict[str, str]:
    """Return the child's whole environment: no secret of the parent's, and nothing random."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return {**inherited, **_FIXED}
