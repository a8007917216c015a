"""The demo that a newcomer joins, and a trial of one installation command of its Join page."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote

from bench.joining.newcomer import Newcomer
from bench.site import RunningSite, await_true, running_site
from swarm_web.dashboard.operations.package_index import read_wheel
from swarm_web.dashboard.reports.installing import BUILDS, TOOLS
from swarm_web.local.probes import HOST, answers_ok

_OFFER_TIMEOUT_S = 120.0

LINES = [f"{build}-{tool}" for build in BUILDS for tool in TOOLS]


@contextmanager
def demo_to_join(*, torch_cpu: Path | None = None) -> Iterator[RunningSite]:
    """Run a demo, and yield it once the client can be installed from it.

    If `torch_cpu` is given, the demo offers PyTorch's CPU build from that folder.
    """
    with ExitStack() as stack:
        index = stack.enter_context(serving_torch(torch_cpu)) if torch_cpu else None
        settings = {"PACKAGE_TORCH_CPU_URL": index} if index else {}
        site = stack.enter_context(running_site("demo", **settings))
        # The client's wheel, which the site builds last.
        has_wheel = partial(answers_ok, site.port, "/simple/swarm-node/")
        await_true(has_wheel, "the site offers no client", within_s=_OFFER_TIMEOUT_S)
        yield site


@contextmanager
def serving_torch(folder: Path) -> Iterator[str]:
    """Serve a folder's wheels of torch, and their metadata, as a package index; yield its URL."""
    with tempfile.TemporaryDirectory() as root, ExitStack() as stack:
        page = Path(root) / "torch" / "index.html"
        page.parent.mkdir()
        for wheel in map(read_wheel, folder.glob("torch-*.whl")):
            page.with_name(wheel.name).symlink_to(wheel.path.resolve())
            page.with_name(f"{wheel.name}.metadata").write_bytes(wheel.metadata)
            with page.open("a") as links:
                links.write(f'<a href="{quote(wheel.name)}#sha256={wheel.sha256}"')
                links.write(f' data-core-metadata="true">{wheel.name}</a>')
        handler = partial(_QuietHandler, directory=root)
        server = stack.enter_context(ThreadingHTTPServer((HOST, 0), handler))
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        yield f"http://{HOST}:{server.server_port}/"


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments: object) -> None:
        pass


def try_line(site: RunningSite, line: str, *, torch_cpu: Path | None = None) -> dict[str, float]:
    """Install with the Join page's command `line`, such as `cpu-uv`; then run `doctor` and `join`.

    Returns the figures of `Newcomer.install` and `Newcomer.join`. The proxy that counts bytes does
    not see downloads from `torch_cpu`. So if `line` installs the CPU build, the size of the wheels
    in `torch_cpu` is added to `download`.
    """
    url = f"http://{HOST}:{site.port}"
    with tempfile.TemporaryDirectory(prefix="newcomer-") as folder:
        newcomer = Newcomer(Path(folder), site=url)
        figures = newcomer.install(line)
        newcomer.run(f"swarm-node doctor {url}")
        figures |= newcomer.join()
    if torch_cpu and line.startswith("cpu"):
        figures["download"] += sum(path.stat().st_size for path in torch_cpu.glob("torch-*.whl"))
    return figures
