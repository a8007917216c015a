"""Run one part of the launcher's stack inside a test process, without the supervisor."""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from swarm_web.local.parts import Part, spawn_options

_POLL_S = 0.01


@contextmanager
def running(
    part: Part, *, log: Path, keep_open: Sequence[int] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the part, wait until it is ready, and stop it at the end; its output goes to `log`."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            part.argv,
            stdout=output,
            stderr=subprocess.STDOUT,
            **spawn_options(part, keep_open=keep_open),
        )
    try:
        _await_ready(part, process, log)
        yield process
    finally:
        process.send_signal(part.stop_signal)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.send_signal(part.kill_signal)
            process.wait()


def _await_ready(part: Part, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + part.ready_within_s
    while not part.is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{part.name} did not start; it said:\n{log.read_text()}")
        time.sleep(_POLL_S)
