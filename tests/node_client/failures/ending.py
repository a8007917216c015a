"""A run of `swarm-node` that fails, and what its owner reads then."""

from dataclasses import dataclass
from pathlib import Path

from tests.node_client.coordinator import TOKEN
from tests.node_client.forked import run_forked


@dataclass(frozen=True)
class Ending:
    """How a run ended: its exit code, what stood on standard output, and on standard error."""

    code: int
    out: str
    told: str


def run_swarm_node(*arguments: str) -> Ending:
    """Run the command in a process of its own until it ends. No failure shows a traceback."""
    ended = run_forked("node_client", *arguments)
    assert "Traceback" not in ended.stderr, ended.stderr
    return Ending(ended.returncode, ended.stdout, " ".join(ended.stderr.split()))


def join(url: str, state: Path, *options: str, token: str = TOKEN) -> Ending:
    """Let a node join until it fails."""
    return run_swarm_node("join", url, "--token", token, "--state-dir", str(state), *options)


def train(state: Path, *options: str) -> Ending:
    """Let a node make one step without a coordinator, unless it fails before."""
    arguments = ("train", "--offline", "--steps", "1", "--state-dir", str(state))
    return run_swarm_node(*arguments, *options)
