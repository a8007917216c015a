"""Draw the terminal panel of a real run into docs/images/panel.svg: `make picture`.

Starts the demo on this machine, lets another node join it, and draws that node's panel once the
judge has scored it in a few rounds. Takes about four minutes.
"""

import asyncio
import io
import re
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from node_client.display.panel import render
from node_client.display.view import NodeView
from node_client.model.policy import Policy
from node_client.runtime.run import make_node
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings, choose
from node_client.site import Site, parse_site
from swarm_tasks.verifier import Verifier
from swarm_web.local.probes import HOST, free_port
from swarm_web.local.process import SiteProcess
from tests.local.launcher import plain_environment
from tests.processes import PROJECT, running

PICTURE = PROJECT / "docs" / "images" / "panel.svg"
WIDTH = 92
ROUNDS = 4
PATIENCE_S = 600
NODE = "kestrel"
# Between the demo's rate and the client's default, which learns everything within one round.
FLAGS = {"learning_rate": "1e-5", "eval_tasks": "32", "eval_every": "200", "model": "tiny"}


def demo_part(port: int, *, state: Path, log: Path) -> SiteProcess:
    """Return the demo with two nodes, ready when it has printed its address."""
    options = ("demo", "--port", str(port), "--nodes", "2", "--state-dir", str(state))
    return SiteProcess(
        name="demo",
        command=(sys.executable, "-m", "swarm_web.local", *options),
        environment=plain_environment(),
        folder=PROJECT,
        is_ready=lambda: f"is at http://{HOST}:{port}" in log.read_text(errors="replace"),
        stop_signal=signal.SIGINT,
    )


def register(*, state: Path, token_file: Path) -> None:
    """Register the node on the running site."""
    manage = (sys.executable, "-m", "swarm_web.local", "manage", "--state-dir", str(state))
    command = ("create_node", "--name", NODE, "--arm", "swarm", "--token-file", str(token_file))
    subprocess.run((*manage, *command), cwd=PROJECT, env=plain_environment(), check=True)


async def watch(settings: Settings) -> str:
    """Run a node until it has been judged, and return its panel as SVG."""
    policy = Policy.load(settings.model, device="cpu")
    view = NodeView(
        model=policy.name,
        parameters=policy.parameters,
        device=str(policy.device),
        arm=settings.arm,
        site=settings.site,
    )
    judged = asyncio.Event()
    view.listeners = [lambda event: judged.set() if is_judged(view) else None]
    with Verifier() as verifier:
        async with ModelWorker() as worker:
            node = make_node(settings, Equipment(policy, verifier, worker, view))
            run = asyncio.create_task(node.run())
            seen = asyncio.create_task(judged.wait())
            await asyncio.wait([run, seen], timeout=PATIENCE_S, return_when=asyncio.FIRST_COMPLETED)
            picture = draw(view)
            node.stop()
            await run
    assert seen.done(), "the judge did not score the node in time"
    return picture


def is_judged(view: NodeView) -> bool:
    """Return whether the panel shows a score of some rounds while the next one is open."""
    scored = view.standing is not None and view.standing.rounds >= ROUNDS
    return scored and view.round is not None and view.round.phase == "open"


def draw(view: NodeView) -> str:
    """Return the panel as SVG that loads nothing: the viewer's own monospaced font is enough."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(render(view, now=datetime.now(UTC), clock=monotonic()))
    form = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", "monospace").replace(
        "font-family: arial", "font-family: sans-serif"
    )
    return console.export_svg(title="swarm-node join", code_format=form, unique_id="panel")


def main() -> None:
    """Draw the picture."""
    port = free_port()
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        state, log = folder / "site", folder / "demo.log"
        with running(demo_part(port, state=state, log=log), log=log):
            token_file = folder / "token"
            register(state=state, token_file=token_file)
            site: Site = parse_site(f"http://{HOST}:{port}")
            flags = {**FLAGS, "state_dir": str(folder / "node"), "token": token_file.read_text()}
            choices = choose(site, flags=flags, environment={}, here=folder)
            settings = choices.resolve(arm="swarm", token=token_file.read_text().strip())
            settings.state.path.mkdir(parents=True)
            PICTURE.write_text(asyncio.run(watch(settings)))


if __name__ == "__main__":
    main()
