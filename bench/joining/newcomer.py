"""A simulated new participant with Python, uv, pipx and an empty home directory, no compiler."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.joining.proxy import counting_proxy

# The system's Python if there is one, because Debian's refuses `pip install` outside of a venv,
# which participants meet too.
_PYTHON = next(p for p in (Path("/usr/bin/python3"), Path(sys.executable)) if p.exists())
_TOOLS = ("uv", "pipx")
_KEPT = re.compile(r"LANG|PIP_CERT|(SSL|REQUESTS|CURL)_.*|.*_PROXY")
_NAMED = re.compile(r"This node is (\S+)\.")
_POLL_S = 0.25
_REQUEST_TIMEOUT_S = 30.0
_SCORE_TIMEOUT_S = 600.0


class Newcomer:
    """A user with the home directory `home` who follows the Join page of the site at URL `site`."""

    def __init__(self, home: Path, *, site: str) -> None:
        self.home, self.site = home, site
        programs = home / "bin"
        programs.mkdir()
        (programs / "python3").symlink_to(_PYTHON)
        for tool in _TOOLS:
            (programs / tool).symlink_to(Path(sys.executable).parent / tool)
        kept = {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}
        self._environment = kept | {
            "HOME": str(home),
            "XDG_CACHE_HOME": str(home / "cache"),
            "PATH": f"{programs}:{home}/.local/bin:{home}/.swarm-node/bin",
            "CC": "/bin/false",
            # Ignore this machine's configuration of pip and uv.
            "PIP_CONFIG_FILE": os.devnull,
            "UV_NO_CONFIG": "1",
        }

    def read_line(self, name: str) -> str:
        """Return the command with the HTML id `name` from the Join page.

        Raises LookupError if the page has none.
        """
        with urllib.request.urlopen(f"{self.site}/join/", timeout=_REQUEST_TIMEOUT_S) as answer:
            page = answer.read().decode()
        found = re.search(rf'<code id="{name}">(.*?)</code>', page, re.DOTALL)
        if found is None:
            raise LookupError(f"the Join page has no line {name!r}")
        return html.unescape(found[1])

    def run(self, line: str, **also: str) -> str:
        """Run a command in a shell and return its output. Raises CalledProcessError if it fails.

        `also` are environment variables to add.
        """
        shell = ["/bin/sh", "-euc", line]
        environment = self._environment | also
        return subprocess.run(
            shell, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def install(self, name: str) -> dict[str, float]:
        """Run the Join page's installation command `name`, such as `cpu-uv`; return its cost.

        The cost is the bytes downloaded (`download`), the bytes on disk afterwards (`disk`), how
        many of the bytes on disk are in caches (`caches`), and the time in `seconds`.
        """
        line = self.read_line(f"install-{name}")
        with counting_proxy() as proxy:
            began = time.monotonic()
            self.run(line, HTTPS_PROXY=proxy.url)
            seconds = time.monotonic() - began
        return {
            "download": proxy.received,
            "disk": measure(self.home),
            "caches": measure(self.home / "cache"),
            "seconds": seconds,
        }

    def join(self) -> dict[str, float]:
        """Run the Join page's command for joining without an account, until the node has a score.

        Returns the seconds from the command's start to the first published rollout, and to the
        first score. Raises TimeoutError with the log if the client ends, if the first rollout takes
        more than ten minutes, or if the first score takes more than ten minutes after that.
        """
        line = self.read_line("join-anonymous")
        began = time.monotonic()
        with self._log.open("wb") as log:
            client = subprocess.Popen(
                ["/bin/sh", "-euc", f"exec {line}"],
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                shared = self._wait_until(lambda row: row["published"] > 0, client)
                scored = self._wait_until(lambda row: row["score"] is not None, client)
            finally:
                client.send_signal(signal.SIGINT)
                client.wait(timeout=60)
        return {"shared_after_s": shared - began, "scored_after_s": scored - began}

    @property
    def _log(self) -> Path:
        return self.home / "join.log"

    def _read_figures(self) -> dict[str, Any] | None:
        """Return the node's entry in the read API; None until the client prints the node's name."""
        named = _NAMED.search(self._log.read_text())
        if named is None:
            return None
        url = f"{self.site}/api/v1/nodes/{named[1]}"
        with urllib.request.urlopen(url, timeout=_REQUEST_TIMEOUT_S) as answer:
            figures: dict[str, Any] = json.load(answer)
        return figures

    def _wait_until(
        self, condition: Callable[[dict[str, Any]], bool], client: subprocess.Popen[bytes]
    ) -> float:
        """Wait until the node's entry in the read API meets `condition`; return when that was.

        The returned time is in seconds of `time.monotonic()`. Raises TimeoutError with the log
        after ten minutes, or if `client` ends.
        """
        deadline = time.monotonic() + _SCORE_TIMEOUT_S
        while time.monotonic() < deadline and client.poll() is None:
            figures = self._read_figures()
            if figures is not None and condition(figures):
                return time.monotonic()
            time.sleep(_POLL_S)
        raise TimeoutError(self._log.read_text())


def measure(folder: Path) -> int:
    """Return how many bytes a folder takes on disk; a file with several hard links counts once."""
    found = {
        (about.st_dev, about.st_ino): about.st_blocks * 512
        for path in folder.rglob("*")
        if (about := path.lstat())
    }
    return sum(found.values())
