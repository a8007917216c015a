"""A run that is killed at random moments ends with the same bits as an uninterrupted one."""

import json
from pathlib import Path

import pytest

from node_client.storage.manifest import read_manifest
from tests.node_client.forked import run_forked
from tests.node_client.runtime.training_process import KILLS, STEPS

pytestmark = pytest.mark.slow

MODULE = "tests.node_client.runtime.training_process"
# Figures that depend only on the clock.
TIMES = ("time", "step_time", "seconds/")


def digests_of(folder: Path) -> dict[str, str]:
    """Return the hashes of the last checkpoint's files, except the one that contains durations."""
    last = folder / "checkpoints" / f"step-{STEPS:08d}"
    return {name: hash for name, hash in read_manifest(last).files.items() if name != "run.json"}


def figures_in(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [
        {name: value for name, value in json.loads(line).items() if not name.startswith(TIMES)}
        for line in lines
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_killed_run_continues_bit_for_bit(tmp_path: Path, threads: int) -> None:
    ran = run_forked(MODULE, str(tmp_path), str(threads), threads=threads)
    assert ran.returncode == 0, ran.stderr
    resumed_at = json.loads(ran.stdout)
    assert len(resumed_at) == KILLS
    assert set(resumed_at) - {0, STEPS}, "no run resumed from a checkpoint"

    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert digests_of(broken) == digests_of(whole)
    assert {"policy/model.safetensors", "trainer.safetensors"} <= set(digests_of(whole))
    figures = figures_in(broken)
    assert [line["step"] for line in figures] == list(range(1, STEPS + 1))
    assert figures == figures_in(whole)
