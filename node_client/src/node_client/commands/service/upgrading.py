"""Installs the client that a coordinator offers, into the environment that this one runs in."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from node_client.site import Site
from node_client.storage.state import StateDir
from node_client.storage.upgrades import Upgrade, read_upgrade, write_upgrade
from swarm_protocol.version import CLIENT_VERSION, parse_version

# An index that sends a byte now and then must not keep the node from starting.
MOST_S = 600

Run = Callable[[Sequence[str]], str]


class UpgradeFailedError(Exception):
    """The client is as it was; the text says why."""


def run_python(words: Sequence[str]) -> str:
    """Run this environment's Python and return what it printed. Raises UpgradeFailedError."""
    words = [sys.executable, *words]
    try:
        done = subprocess.run(
            words,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=MOST_S,
        )
    except subprocess.TimeoutExpired:
        raise UpgradeFailedError(f"it took longer than {MOST_S} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        told = next((line for line in lines if line.startswith("ERROR: ")), lines[-1])
        raise UpgradeFailedError(told.removeprefix("ERROR: "))
    return done.stdout


def upgrade_if_asked(
    site: Site, state: StateDir, *, now: datetime, run: Run = run_python
) -> str | None:
    """Install a newer client if the node has asked for one, and return what came of it in words.

    Raises SettingsError and OSError when the note about it cannot be read or written.
    """
    asked = read_upgrade(state)
    if asked is None or asked.tried_at is not None:
        return None
    problem = ""
    try:
        said = f"updated from {CLIENT_VERSION} to {install(site, oldest=asked.wanted, run=run)}"
    except UpgradeFailedError as trouble:
        problem = str(trouble)
        said = f"not updated, going on with {CLIENT_VERSION}: {problem}"
    write_upgrade(state, Upgrade(asked.wanted, tried_at=now, problem=problem))
    return said


def install(site: Site, *, oldest: str, run: Run) -> str:
    """Install a site's client if it is newer than this one, and return its version.

    Only the client itself is taken from the site, which serves it with its hash; what it depends on
    comes from where pip always looks. Raises UpgradeFailedError.
    """
    pip = ("-m", "pip", "--disable-pip-version-check")
    try:
        run((*pip, "--version"))
    except UpgradeFailedError:
        run(("-m", "ensurepip"))  # uv makes environments without pip
    with TemporaryDirectory() as folder:
        # No dependencies, and wheels only: to build a package is to run its code.
        source = ("--isolated", "--index-url", f"{site.base}/simple/", "--no-deps")
        wheels = ("--only-binary", ":all:")
        run((*pip, "download", *source, *wheels, "--dest", folder, f"swarm-node>{CLIENT_VERSION}"))
        [wheel] = Path(folder).iterdir()
        run((*pip, "install", "--upgrade", str(wheel)))
    version = run(("-m", "node_client", "--version")).split()[-1]
    if oldest and _is_older(version, oldest):
        raise UpgradeFailedError(f"the site offers {version}, and asks for {oldest}")
    return version


def _is_older(version: str, oldest: str) -> bool:
    try:
        return parse_version(version) < parse_version(oldest)
    except ValueError:
        return False
