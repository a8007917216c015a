"""The description of a node's service, and calls of the system's service manager."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from node_client.errors import NodeError
from node_client.site import Site


@dataclass(frozen=True)
class ServiceUnit:
    """The service of one node, as written to a systemd unit or a launchd property list.

    The token is not included, because other users can read these files. All paths are absolute: the
    interpreter `python`, the `state` folder and the settings file `config`.
    """

    site: Site
    python: Path
    state: Path
    config: Path | None = None
    auto_update: bool = False

    @property
    def name(self) -> str:
        """The name of the service: one for each coordinator."""
        return f"swarm-node@{self.site.folder}"

    @property
    def command(self) -> list[str]:
        """The command that the service runs, as a list of words."""
        arguments = [str(self.python), "-m", "node_client", "service", "run", self.site.base]
        arguments += ["--state-dir", str(self.state)]
        if self.config is not None:
            arguments += ["--config", str(self.config)]
        return [*arguments, "--auto-update"] if self.auto_update else arguments


def call(arguments: Sequence[str], *, check: bool = True) -> str:
    """Run a program and return its standard output.

    If `check` is true, raises NodeError when the program fails or cannot be started. Otherwise
    returns the output even if the program failed, and an empty text if it could not be started.
    """
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    except OSError as problem:
        if not check:
            return ""
        raise _missing(arguments[0], str(problem.strerror)) from problem
    if check and done.returncode:
        raise _missing(" ".join(arguments), (done.stderr or done.stdout).strip())
    return done.stdout


def run_attached(arguments: Sequence[str]) -> None:
    """Run a program with its output on the terminal; Ctrl-C ends it without an error.

    Raises typer.Exit with the program's exit status if that is not 0, NodeError when the program
    cannot be started.
    """
    try:
        code = subprocess.run(arguments, check=False).returncode
    except OSError as problem:
        raise _missing(arguments[0], str(problem.strerror)) from problem
    except KeyboardInterrupt:
        code = 0
    if code:
        raise typer.Exit(code)


def _missing(what: str, why: str) -> NodeError:
    return NodeError(
        f"`{what}` failed: {why}",
        fix="A service needs a session of systemd or launchd. Otherwise let another supervisor run "
        "`swarm-node join URL`; `swarm-node service install URL --print` shows an example.",
    )
