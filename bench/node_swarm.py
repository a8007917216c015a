"""How much of a training step goes to the swarm while a node is joined to a real coordinator."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.report import PROJECT
from bench.site import RunningSite, running_site
from swarm_web.local.commands import create_node, here, join_swarm
from swarm_web.local.ports import HOST

# Two nodes, so that there are rollouts of others to fetch, judge and mix in.
NODES = ("bench-left", "bench-right")
MODEL = "small"
STEPS = 100
# The first steps meet an empty pool, and caches that fill.
WARM_UP_STEPS = 20
# Half a minute on a quiet machine; a busy one takes many times that.
_DONE_WITHIN_S = 900.0


def measure_swarm_overhead() -> float:
    """Return the share of the steps' time that both nodes spend on the swarm."""
    with tempfile.TemporaryDirectory() as name, running_site() as site:
        folder = Path(name)
        nodes = [_start(site, node, folder) for node in NODES]
        try:
            for node in nodes:
                if node.wait(timeout=_DONE_WITHIN_S) != 0:
                    raise RuntimeError(f"a node failed; it said:\n{_last_words(folder)}")
        finally:
            for node in nodes:
                node.kill()
        return _swarm_share(folder)


def _start(site: RunningSite, node: str, folder: Path) -> subprocess.Popen[bytes]:
    token = folder / f"{node}.token"
    registered = create_node(name=node, arm="swarm", token_file=str(token))
    subprocess.run(here(registered), cwd=PROJECT, env=site.settings, check=True)
    command = join_swarm(
        url=f"http://{HOST}:{site.port}/",
        token_file=str(token),
        model=MODEL,
        state=str(folder / node),
    )
    with (folder / f"{node}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "node_client", *command[1:], "--steps", str(STEPS)],
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _swarm_share(folder: Path) -> float:
    swarm = total = 0.0
    for path in folder.rglob("metrics.jsonl"):
        for line in path.read_text().splitlines()[WARM_UP_STEPS:]:
            figures = json.loads(line)
            swarm += figures["seconds/swarm"]
            total += figures["step_time"]
    return swarm / total


def _last_words(folder: Path) -> str:
    return "\n".join(log.read_text()[-500:] for log in folder.glob("*.log"))
