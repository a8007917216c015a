"""A run of `swarm-node` that fails, and what it prints."""

from dataclasses import dataclass
from pathlib import Path

from tests.node_client.coordinator import TOKEN
from tests.node_client.forked import run_forked


@dataclass(frozen=True)
class Ending:
    """How a run ended: its exit code, standard output and standard error."""

    code: int
    out: str
    stderr: str


def run_swarm_node(*arguments: str) -> Ending:
    """Run the command in its own process until it ends. No failure may print a traceback."""
    ended = run_forked("node_client", *arguments)
    assert "Traceback" not in ended.stderr, ended.stderr
    return Ending(ended.returncode, ended.stdout, " ".join(ended.stderr.split()))


def join(url: str, state: Path, *options: str, token: str = TOKEN) -> Ending:
    """Run `swarm-node join` until it fails."""
    return run_swarm_node("join", url, "--token", token, "--state-dir", str(state), *options)


def train(state: Path, *options: str) -> Ending:
    """Train one step without a coordinator, unless the command fails before."""
    arguments = ("train", "--offline", "--steps", "1", "--state-dir", str(state))
    return run_swarm_node(*arguments, *options)
