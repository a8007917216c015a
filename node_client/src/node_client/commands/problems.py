"""Turns errors of commands into two lines for the user and an exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from node_client.display.terminal import clean
from node_client.errors import (
    INTERRUPTED,
    CoordinatorRefusedError,
    NodeError,
    NotACoordinatorError,
    UncheckableError,
    UpgradeDueError,
)
from swarm_protocol.errors import RefusedError

FAILED = 1
REFUSED = 2
UNCHECKED = 2
DOUBTFUL = 3
# EX_TEMPFAIL of sysexits.h: the supervisor may start the node again.
UPGRADE_DUE = 75


@contextmanager
def explained_problems() -> Iterator[None]:
    """If the body raises NodeError, print two lines on standard error, and raise typer.Exit.

    The first line is the error, the second what to do; the exit status depends on the error. The
    same applies to a RefusedError of this machine's verifier. Ctrl-C prints "Interrupted." and
    exits with INTERRUPTED.
    """
    try:
        yield
    except NodeError as problem:
        _print(problem.code, problem.message, fix=problem.fix)
        raise typer.Exit(exit_code_of(problem)) from None
    except RefusedError as problem:  # the client handles refusals of a coordinator
        _print(problem.code, problem.message, fix="Run `swarm-node doctor`: it tests the verifier.")
        raise typer.Exit(FAILED) from None
    except KeyboardInterrupt:
        typer.echo("\nInterrupted.", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _print(code: str, message: str, *, fix: str) -> None:
    # Parts of the text may come from a coordinator.
    typer.secho(clean(f"{code}: {message}"), fg="red", err=True)
    typer.echo(clean(fix), err=True)


def exit_code_of(problem: NodeError) -> int:
    """Return the exit code of a command that ended with this error."""
    if isinstance(problem, CoordinatorRefusedError | NotACoordinatorError):
        return REFUSED
    if isinstance(problem, UpgradeDueError):
        return UPGRADE_DUE
    return UNCHECKED if isinstance(problem, UncheckableError) else FAILED
