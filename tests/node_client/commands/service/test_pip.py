"""An update with pip itself: a virtual environment, and a package index on this machine."""

import os
import subprocess
import sys
import threading
import venv
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from node_client.commands.service.upgrading import UpgradeFailedError, install
from node_client.site import Site

pytestmark = pytest.mark.slow

WHEEL = "swarm_node-9.9.9-py3-none-any.whl"
FILES = {
    "node_client/__init__.py": "",
    "node_client/__main__.py": "print('swarm-node 9.9.9')\n",
    "swarm_node-9.9.9.dist-info/METADATA": (
        "Metadata-Version: 2.1\nName: swarm-node\nVersion: 9.9.9\n"
    ),
    "swarm_node-9.9.9.dist-info/WHEEL": (
        "Wheel-Version: 1.0\nGenerator: a test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    ),
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: object) -> None: ...


@contextmanager
def serving(folder: Path, *, digest: str | None = None) -> Iterator[Site]:
    """Serve an index with a newer client; a given `digest` replaces the right hash on the page."""
    pages = folder / "simple" / "swarm-node"
    pages.mkdir(parents=True)
    with zipfile.ZipFile(pages / WHEEL, "w") as wheel:
        for name, text in FILES.items():
            wheel.writestr(name, text)
        record = "swarm_node-9.9.9.dist-info/RECORD"
        wheel.writestr(record, "".join(f"{name},,\n" for name in (*FILES, record)))
    digest = digest or sha256((pages / WHEEL).read_bytes()).hexdigest()
    (pages / "index.html").write_text(f'<a href="{WHEEL}#sha256={digest}">{WHEEL}</a>')
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a virtual environment without client and, as with uv, without pip."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    return folder / "bin" / "python"


def run(python: Path, words: Sequence[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, *words], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UpgradeFailedError(done.stderr)
    return done.stdout


def test_file_with_another_hash_than_in_the_index_is_not_installed(
    tmp_path: Path, python: Path
) -> None:
    with (
        serving(tmp_path, digest="0" * 64) as site,
        pytest.raises(UpgradeFailedError, match=r"(?i)hash"),
    ):
        install(site, oldest="9.0.0", run=partial(run, python))
    assert "swarm-node" not in run(python, ["-m", "pip", "list"])


@pytest.mark.skipif(sys.platform == "win32", reason="the environment's layout is another one")
def test_client_of_the_site_is_installed(tmp_path: Path, python: Path) -> None:
    with serving(tmp_path) as site:
        assert install(site, oldest="9.0.0", run=partial(run, python)) == "9.9.9"
