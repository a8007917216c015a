"""Installs the client that a coordinator offers into the environment of the running client."""

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from node_client.site import Site
from node_client.storage.state import StateDir
from node_client.storage.upgrades import UpgradeRequest, read_upgrade, write_upgrade
from swarm_protocol.version import CLIENT_VERSION, parse_version

# A slow package index must not prevent the start of the node.
TIMEOUT_S = 600

RunPython = Callable[[Sequence[str]], str]


class UpgradeFailedError(Exception):
    """The upgrade failed; the message is the reason."""


def run_python(arguments: Sequence[str]) -> str:
    """Run this environment's Python with arguments and return its standard output.

    Raises UpgradeFailedError when it fails or takes longer than TIMEOUT_S.
    """
    arguments = [sys.executable, *arguments]
    try:
        done = subprocess.run(
            arguments,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise UpgradeFailedError(f"it took longer than {TIMEOUT_S} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason was given"]
        error = next((line for line in lines if line.startswith("ERROR: ")), lines[-1])
        raise UpgradeFailedError(error.removeprefix("ERROR: "))
    return done.stdout


def upgrade_if_requested(
    site: Site, state: StateDir, *, now: datetime, run: RunPython = run_python
) -> str | None:
    """Install a newer client if the node has requested one; return a sentence about the result.

    If the installation fails, the sentence gives the reason. After an attempt, successful or not,
    the request is saved as tried. If there is no request, or if it was tried before, nothing is
    done and the result is None. Raises SettingsError when the request cannot be read. Raises
    OSError when a file cannot be written; the request is then not saved as tried.
    """
    request = read_upgrade(state)
    if request is None or request.tried_at is not None:
        return None
    problem = ""
    try:
        result = f"updated from {CLIENT_VERSION} to {install(site, oldest=request.wanted, run=run)}"
    except UpgradeFailedError as trouble:
        problem = str(trouble)
        result = f"not updated, continuing with {CLIENT_VERSION}: {problem}"
    write_upgrade(state, UpgradeRequest(request.wanted, tried_at=now, problem=problem))
    return result


def install(site: Site, *, oldest: str, run: RunPython) -> str:
    """Install the client of a site and return its version.

    Only the client is downloaded from the site, which serves it with its hash; dependencies come
    from pip's usual index. Raises UpgradeFailedError when the site has no newer client than this
    one, when pip fails, or when the new client does not start. Also raises it, and installs
    nothing, when the new client is older than version `oldest`. If `oldest` is empty, every newer
    version is accepted.
    """
    pip = ("-m", "pip", "--disable-pip-version-check")
    try:
        run((*pip, "--version"))
    except UpgradeFailedError:
        run(("-m", "ensurepip"))  # uv creates environments without pip
    with TemporaryDirectory() as folder:
        # No dependencies, and wheels only: building a package would run its code.
        source = ("--isolated", "--index-url", f"{site.base}/simple/", "--no-deps")
        wheels = ("--only-binary", ":all:")
        run((*pip, "download", *source, *wheels, "--dest", folder, f"swarm-node>{CLIENT_VERSION}"))
        [wheel] = Path(folder).iterdir()
        version = wheel.name.split("-")[1]  # swarm_node-VERSION-py3-none-any.whl
        if oldest and _is_older(version, oldest):
            raise UpgradeFailedError(f"the site offers {version}, but requires {oldest}")
        run((*pip, "install", "--upgrade", str(wheel)))
    return run(("-m", "node_client", "--version")).split()[-1]


def _is_older(version: str, oldest: str) -> bool:
    try:
        return parse_version(version) < parse_version(oldest)
    except ValueError:
        return False
