"""Processes forked from one that has imported what a node needs, which takes 4 s of CPU time.

That process starts with the first of them, and ends with the tests.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

PATIENCE_S = 120
STOPS_WITHIN_S = 10
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["node_client.runtime.run", "tests.node_client.fakes", __name__])


def run_forked(module: str, *arguments: str, threads: int = 1) -> CompletedProcess[str]:
    """Run a module like `python -m`, and return how it ended and what it printed.

    A process that takes longer than PATIENCE_S is killed with all its children.
    """
    with TemporaryDirectory() as folder:
        printed = Path(folder, "stdout"), Path(folder, "stderr")
        process = SERVER.Process(target=_run, args=(module, arguments, threads, printed))
        process.start()
        process.join(PATIENCE_S)
        if process.exitcode is None:
            assert process.pid is not None
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
        assert process.exitcode is not None
        texts = [path.read_text() for path in printed]
        return CompletedProcess([module, *arguments], process.exitcode, *texts)


@contextmanager
def running_forked(module: str, *arguments: str, log: Path) -> Iterator[BaseProcess]:
    """Run a module like `python -m` until the block ends, then ask it to stop.

    Its output is appended to `log`.
    """
    process = SERVER.Process(target=_run, args=(module, arguments, 1, (log, log)))
    process.start()
    try:
        yield process
    finally:
        process.terminate()
        process.join(STOPS_WITHIN_S)
        process.kill()
        process.join()


def _run(module: str, arguments: Sequence[str], threads: int, printed: Sequence[Path]) -> None:
    import torch

    gc.freeze()  # the imported modules: a node short of memory collects garbage repeatedly
    os.setsid()
    for stream, path in enumerate(printed, start=1):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), stream)
    torch.set_num_threads(threads)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
