"""A separate process that runs one function, which gets its task and answers over a pipe.

What it was busy with when it failed is lost, and nothing else: not the memory of a GPU, nor the GPU
itself, which no process can use any more after some errors.
"""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

_EXIT_TIMEOUT_S = 30.0


class IsolatedProcessError(Exception):
    """The process failed, ended or did not answer in time; the message says which, and why."""


@dataclass(frozen=True)
class _Failure:
    """Why the process failed, sent before it ends."""

    message: str


class IsolatedProcess:
    """A running isolated process."""

    def __init__(self, connection: Connection, process: BaseProcess) -> None:
        self._connection = connection
        self._process = process

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._process.pid

    def send(self, message: object) -> None:
        """Send it a message; if it has ended, `receive` says why."""
        with suppress(BrokenPipeError):
            self._connection.send(message)

    def receive(self, *, within_s: float) -> Any:
        """Return its next answer. Raises ApartError."""
        if not self._connection.poll(within_s):
            raise IsolatedProcessError(f"no answer within {within_s:.0f} s")
        try:
            answer = self._connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join(timeout=_EXIT_TIMEOUT_S)
            code = self._process.exitcode
            raise IsolatedProcessError(f"its process ended with {code}") from None
        if isinstance(answer, _Failure):
            raise IsolatedProcessError(answer.message)
        return answer


@contextmanager
def isolated_process(run: str, *arguments: object) -> Iterator[IsolatedProcess]:
    """Run MODULE:FUNCTION(connection, *arguments) in its own process until the block ends.

    The function returns when `receive_message` returns None. After an exception
    in the block it is ended at once, with all that it started.
    """
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_run, args=(run, there, arguments)
    )
    process.start()
    there.close()
    try:
        yield IsolatedProcess(here, process)
        here.close()
        process.join(timeout=_EXIT_TIMEOUT_S)
    finally:
        here.close()
        _kill(process)


def receive_message(connection: Connection) -> Any:
    """Wait, in the isolated process, for the next message; None means that it shall end."""
    try:
        return connection.recv()
    except (EOFError, ConnectionResetError):
        return None


def _run(name: str, connection: Connection, arguments: tuple[object, ...]) -> None:
    """Run a function whose libraries are imported in this process only."""
    module, function = name.split(":")
    try:
        getattr(import_module(module), function)(connection, *arguments)
    except IsolatedProcessError as problem:  # of a process that has told where it came from
        _send_failure(connection, str(problem))
    except Exception as problem:  # whatever it was, the other process is told
        lines = [line for line in str(problem).splitlines() if line.strip()]
        _send_failure(
            connection, f"{type(problem).__name__}: {lines[0] if lines else 'without a word'}"
        )
        raise  # with where it came from, to the terminal


def _send_failure(connection: Connection, message: str) -> None:
    with suppress(BrokenPipeError):
        connection.send(_Failure(message))


def _kill(process: BaseProcess) -> None:
    """Kill a process and what it started, if it still runs."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.join()
