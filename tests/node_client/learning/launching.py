"""Two processes of one node: real processes over gloo."""

from pathlib import Path

from tests.node_client.forked import run_forked


def launch_two(module: str, folder: Path) -> None:
    """Run a module of these tests in two processes that write their results to a folder."""
    ran = run_forked("tests.node_client.pair", f"tests.node_client.learning.{module}", str(folder))
    assert ran.returncode == 0, ran.stderr
