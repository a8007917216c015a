"""Two processes of one node. Real processes over gloo."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 120


def launch_two(module: str, folder: Path) -> None:
    """Run a module of these tests in two processes that leave what came out in a folder."""
    pair = [sys.executable, "-m", "tests.node_client.pair"]
    ran = subprocess.run(
        [*pair, f"tests.node_client.learning.{module}", str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
