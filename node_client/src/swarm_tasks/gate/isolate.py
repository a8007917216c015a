"""Runs a function in a forked process, because it may hang, use up memory or be hostile."""

import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_MEMORY_BYTES = 2 << 30
# Deadlines are in processor time, so that a busy machine gives the same results as an idle one. The
# limit in wall-clock time, this many times the deadline, ends functions that sleep.
_WALL_FACTOR = 20
_fork = multiprocessing.get_context("fork")


class IsolatedError(Exception):
    """The function did not return: it hung, raised an error, or its process died."""


class HungError(IsolatedError):
    """The function was still running at its deadline."""


def run_isolated(
    deadline_s: float,
    function: Callable[Parameters, Result],
    *arguments: Parameters.args,
    **named: Parameters.kwargs,
) -> Result:
    """Return the function's result, computed in a child process.

    Raises HungError, which is an IsolatedError, after `deadline_s` seconds of processor time or 20
    times as many seconds of wall-clock time. Raises IsolatedError if the process died, or if the
    function raised an error; in the second case the message has the error's type and text.
    """
    receiver, sender = _fork.Pipe(duplex=False)

    def work() -> None:
        signal.setitimer(signal.ITIMER_PROF, deadline_s)
        _send_result(sender, lambda: function(*arguments, **named))

    process = _fork.Process(target=work)
    process.start()
    sender.close()
    try:
        if not receiver.poll(deadline_s * _WALL_FACTOR):
            raise HungError(f"still waiting after {deadline_s * _WALL_FACTOR:g} s")
        returned, value = receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode == -signal.SIGPROF:
            raise HungError(f"still running after {deadline_s:g} s") from None
        raise IsolatedError(f"the process ended with status {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
        process.close()
        receiver.close()
    if not returned:
        raise IsolatedError(value)
    result: Result = value
    return result


def succeeds_isolated(
    deadline_s: float,
    function: Callable[Parameters, object],
    *arguments: Parameters.args,
    **named: Parameters.kwargs,
) -> bool:
    """Return whether `run_isolated` returns a result instead of raising IsolatedError."""
    try:
        run_isolated(deadline_s, function, *arguments, **named)
    except IsolatedError:
        return False
    return True


def _send_result(sender: Connection, function: Callable[[], object]) -> None:
    """Run the function and send `(True, result)` or `(False, error text)`.

    Before that, limit this process's memory and discard its output.
    """
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    try:
        message: tuple[bool, object] = (True, function())
    except Exception as problem:  # noqa: BLE001 - generators may raise anything; it is the finding
        message = (False, f"{type(problem).__name__}: {problem}"[:200])
    sender.send(message)
