"""The demo's nodes: copies of one small model that train on this machine's CPU.

The nodes share rollouts, but if there are four or more, the last one trains alone. One further node
is not trained. So the scores show the effect of training and of sharing (docs/lab.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local import commands
from swarm_web.local.process import SiteProcess
from swarm_web.local.site import LocalSite, node_environment

_BIRDS = ("starling", "dunlin", "lapwing", "knot", "sandpiper", "plover", "avocet", "curlew")
# A model with rare rewards at first: if a node finds enough by itself, sharing has no effect.
MODEL = "tiny-rare"
# With fewer nodes, an isolated one would leave too small a swarm.
_MIN_NODES_WITH_ISOLATED = 4
# With torch, Python takes a while to exit on a busy machine. All data is saved before that.
_STOP_TIMEOUT_S = 3.5


@dataclass(frozen=True)
class DemoNode:
    """A node of the demo; `arm` is `swarm`, `isolated` or `base` (untrained)."""

    name: str
    arm: str


# The untrained node.
BASE_NODE = DemoNode(name=f"{MODEL}-base", arm="base")


def plan_nodes(count: int) -> list[DemoNode]:
    """Return `count` nodes that train. If there are four or more, the last one is isolated."""
    nodes = []
    for number in range(count):
        flock, bird = divmod(number, len(_BIRDS))
        name = _BIRDS[bird] if flock == 0 else f"{_BIRDS[bird]}-{flock + 1}"
        is_isolated = count >= _MIN_NODES_WITH_ISOLATED and number == count - 1
        arm = "isolated" if is_isolated else "swarm"
        nodes.append(DemoNode(name=name, arm=arm))
    return nodes


def token_folder(site: LocalSite) -> Path:
    """Return the folder with the nodes' tokens, one file for each node."""
    return site.state / "tokens"


def registration(site: LocalSite, node: DemoNode) -> tuple[str, ...]:
    """Return the command that registers the node."""
    return commands.create_node(
        name=node.name, arm=node.arm, token_file=str(token_folder(site) / node.name)
    )


def node_process(site: LocalSite, node: DemoNode, *, outer: Mapping[str, str]) -> SiteProcess:
    """Return the process to start for the node; `outer` is the environment of the launcher."""
    command = commands.join_swarm(
        url=site.url,
        token_file=str(token_folder(site) / node.name),
        model=MODEL,
        arm=node.arm,
        state=str(site.state / "nodes" / node.name),
    )
    training = () if node.arm == "base" else commands.DEMO_TRAINING
    return SiteProcess(
        name=node.name,
        command=commands.here((*command, *training)),
        environment=node_environment(outer),
        stop_timeout_s=_STOP_TIMEOUT_S,
    )
