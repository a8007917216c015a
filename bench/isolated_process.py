"""A separate process that runs one function, which receives messages and answers over a pipe.

If it fails, only its current task is lost. GPU memory is freed with the process, and a GPU error
after which a process cannot use the GPU does not affect others.
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
    """The handle of a running isolated process, in the process that started it."""

    def __init__(self, connection: Connection, process: BaseProcess) -> None:
        self._connection = connection
        self._process = process

    @property
    def pid(self) -> int | None:
        """The process's id."""
        return self._process.pid

    def send(self, message: object) -> None:
        """Send it a message. If it has ended, this does nothing, and `receive` raises."""
        with suppress(BrokenPipeError):
            self._connection.send(message)

    def receive(self, *, within_s: float) -> Any:
        """Return its next answer.

        Raises IsolatedProcessError if it has failed or ended, or does not answer within `within_s`
        seconds.
        """
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

    Then `receive_message` returns None to the function, and it must return within half a minute.
    After an exception in the block, or after that time, the process and its children are killed.
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
    """In the isolated process: return the next message, or None when the function must return."""
    try:
        return connection.recv()
    except (EOFError, ConnectionResetError):
        return None


def _run(name: str, connection: Connection, arguments: tuple[object, ...]) -> None:
    """Import and run a function in the isolated process; send the reason if it fails."""
    module, function = name.split(":")
    try:
        getattr(import_module(module), function)(connection, *arguments)
    except IsolatedProcessError as problem:  # from a process that this one started
        _send_failure(connection, str(problem))
    except Exception as problem:  # the edge: the parent is told of any error
        lines = [line for line in str(problem).splitlines() if line.strip()]
        _send_failure(
            connection, f"{type(problem).__name__}: {lines[0] if lines else 'without a word'}"
        )
        raise  # to print the traceback


def _send_failure(connection: Connection, message: str) -> None:
    with suppress(BrokenPipeError):
        connection.send(_Failure(message))


def _kill(process: BaseProcess) -> None:
    """Kill a process, if it still runs, and all its descendants."""
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.join()
