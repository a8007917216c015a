"""The demo's nodes: copies of one small model that really train, on this machine's CPU. All but the
last share what they find; the last trains alone, and one more copy not at all, so that the scores
show what training does and what sharing adds (docs/lab.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local import commands
from swarm_web.local.environment import Site, node_environment
from swarm_web.local.parts import Part

_BIRDS = ("starling", "dunlin", "lapwing", "knot", "sandpiper", "plover", "avocet", "curlew")
# Seldom rewarded at first: where a node finds enough by itself, sharing shows nothing.
MODEL = "tiny-rare"
# With fewer nodes, one on its own would leave too small a swarm to share with.
_FEWEST_WITH_ISOLATED = 4
# Leaving Python takes torch a while on a busy machine; all is saved before that.
_STOPS_WITHIN_S = 3.5


@dataclass(frozen=True)
class DemoNode:
    """One node of the demo."""

    name: str
    model: str
    arm: str


def plan_nodes(count: int) -> list[DemoNode]:
    """Return `count` nodes; of four or more the last is isolated."""
    nodes = []
    for number in range(count):
        flock, bird = divmod(number, len(_BIRDS))
        name = _BIRDS[bird] if flock == 0 else f"{_BIRDS[bird]}-{flock + 1}"
        is_isolated = count >= _FEWEST_WITH_ISOLATED and number == count - 1
        arm = "isolated" if is_isolated else "swarm"
        nodes.append(DemoNode(name=name, model=MODEL, arm=arm))
    return nodes


def plan_base_nodes(nodes: Sequence[DemoNode]) -> list[DemoNode]:
    """Return an untrained node for each model among `nodes`, named after it."""
    models = dict.fromkeys(node.model for node in nodes)
    return [DemoNode(name=f"{model}-base", model=model, arm="base") for model in models]


def token_folder(site: Site) -> Path:
    """Return where the nodes' tokens are kept, a file each."""
    return site.state / "tokens"


def registration(site: Site, node: DemoNode) -> tuple[str, ...]:
    """Return the command that makes the node known to the server."""
    return commands.create_node(
        name=node.name, arm=node.arm, token_file=str(token_folder(site) / node.name)
    )


def node_part(site: Site, node: DemoNode, *, outer: Mapping[str, str]) -> Part:
    """Return the running node."""
    command = commands.join_swarm(
        url=site.url,
        token_file=str(token_folder(site) / node.name),
        model=node.model,
        arm=node.arm,
        state=str(site.state / "nodes" / node.name),
    )
    training = () if node.arm == "base" else commands.DEMO_TRAINING
    return Part(
        name=node.name,
        command=commands.here((*command, *training)),
        environment=node_environment(outer),
        stop_within_s=_STOPS_WITHIN_S,
    )
