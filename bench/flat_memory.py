"""`make bench-flat-memory`: check whether the memory of a node grows in a long training run.

A node trains the model `tiny` alone, and writes metrics and checkpoints. The memory of its process
is read at regular intervals. `--steps` sets the number of steps.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import psutil

from bench.report import Target, conclude, print_table, print_targets
from node_client.display.view import NodeView
from node_client.learning.report import StepReport, TrainingTotals
from node_client.model.policy import Policy
from node_client.runtime.alone import train_offline
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier

STEPS = 2000
READINGS = 20
GROWTH = Target("growth", "memory at the end : after a twentieth of the steps", "", at_most=1.05)


class WatchingView(NodeView):
    """A node's state that also records how much memory the process uses.

    If a step's number is a multiple of `every`, `readings` maps it to the resident bytes after the
    step.
    """

    every: int
    readings: dict[int, int]

    def show_step(self, report: StepReport, totals: TrainingTotals) -> None:
        """Show the step, and read the memory if a reading is due."""
        super().show_step(report, totals)
        if report.step % self.every == 0:
            self.readings[report.step] = psutil.Process().memory_info().rss


async def watch_memory(folder: Path, *, steps: int) -> dict[int, int]:
    """Train alone for `steps` steps; return the resident bytes at each reading, by step."""
    settings = Settings(state=StateDir(folder), model="tiny", arm="isolated", steps=steps)
    policy = Policy.load("tiny", device="cpu")
    view = WatchingView(model="tiny", parameters=policy.parameters, device="cpu", arm="isolated")
    view.every, view.readings = max(1, steps // READINGS), {}
    with Verifier() as verifier:
        async with ModelWorker() as worker:
            equipment = Equipment(policy=policy, verifier=verifier, worker=worker, view=view)
            await train_offline(settings, equipment=equipment).run()
    return view.readings


def main(arguments: list[str]) -> int:
    """Train and print the readings; if the run has STEPS steps, also write the figures.

    Returns 1 if the memory grew by more than GROWTH allows, else 0.
    """
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.flat_memory")
    parser.add_argument("--steps", type=int, default=STEPS, help=f"default {STEPS}")
    steps = parser.parse_args(arguments).steps
    with tempfile.TemporaryDirectory() as folder:
        readings = asyncio.run(watch_memory(Path(folder), steps=steps))
    rows = [(f"{step}", f"{size / 1e6:.0f}") for step, size in readings.items()]
    print_table("Memory of a node's process", ("step", "MB"), rows, left=())
    first, *_, last = readings.values()
    figures = {"growth": last / first, "first_mb": first / 1e6, "last_mb": last / 1e6}
    if steps == STEPS:
        return conclude("flat-memory", figures, [GROWTH])
    return 0 if print_targets(figures, [GROWTH]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
