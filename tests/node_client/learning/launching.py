"""Two processes of one node, launched as `accelerate launch` would. Real processes over gloo."""

import os
import subprocess
import sys
from pathlib import Path

PATIENCE_S = 120


def launch_two(module: str, folder: Path) -> None:
    """Run a module of these tests in two processes that leave what came out in a folder."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ran = subprocess.run(
        [sys.executable, *launcher, "-m", f"tests.node_client.learning.{module}", str(folder)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert ran.returncode == 0, ran.stderr
