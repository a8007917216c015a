"""Programs of the system that services are managed with."""

import subprocess
from collections.abc import Sequence

import typer

from node_client.errors import NodeError


def call(words: Sequence[str], *, must: bool = True) -> str:
    """Run a program and return what it printed. Raises NodeError, if it must, when it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError as problem:
        if not must:
            return ""
        raise _missing(words[0], str(problem.strerror)) from problem
    if must and done.returncode:
        raise _missing(" ".join(words), (done.stderr or done.stdout).strip())
    return done.stdout


def told(words: Sequence[str]) -> None:
    """Run a program that talks to the person, and end as it does. Raises NodeError, typer.Exit."""
    try:
        code = subprocess.run(words, check=False).returncode
    except OSError as problem:
        raise _missing(words[0], str(problem.strerror)) from problem
    except KeyboardInterrupt:
        code = 0
    if code:
        raise typer.Exit(code)


def _missing(what: str, why: str) -> NodeError:
    return NodeError(
        f"`{what}` failed: {why}",
        fix="A service needs a session of systemd or launchd. Elsewhere let another supervisor run "
        "`swarm-node join URL`; `swarm-node service install URL --print` shows how.",
    )
