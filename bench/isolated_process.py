"""A separate process that runs one function, which receives messages and answers over a pipe.

If the function fails, only its current task is lost. GPU memory is freed when the process ends, and
a GPU error after which a process cannot use the GPU does not affect other processes.
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
    """Failure, end or timeout of an isolated process; the message gives the reason."""


@dataclass(frozen=True)
class _Failure:
    """The reason why the isolated process failed, which the process sends before its end."""

    message: str


class IsolatedProcess:
    """The handle of a running isolated process, in the process that started it."""

    def __init__(self, connection: Connection, process: BaseProcess) -> None:
        self._connection = connection
        self._process = process

    @property
    def pid(self) -> int | None:
        """The id of the isolated process."""
        return self._process.pid

    def send(self, message: object) -> None:
        """Send a message to the process.

        If the process has ended, do nothing: the next `receive` raises IsolatedProcessError.
        """
        with suppress(BrokenPipeError):
            self._connection.send(message)

    def receive(self, *, within_s: float) -> Any:
        """Return the next answer of the process.

        Raises IsolatedProcessError if the process has failed or ended, or does not answer within
        `within_s` seconds.
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
    """Run a function, given as MODULE:FUNCTION, in a separate process until the block ends.

    The function is called with a connection and `arguments`. When the block ends, `receive_message`
    returns None in the process, and the function must return within half a minute. After that time,
    or after an exception in the block, the process and its children are killed.
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
    """Import and run MODULE:FUNCTION in the isolated process; if it fails, send the reason."""
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
