"""A node that trains alone, in processes that are killed.

python -m tests.node_client.runtime.training_process FOLDER THREADS: trains without a break in
FOLDER/whole, and in FOLDER/broken with the same key, killed at random moments and started again
until it is done. Prints the steps at which it was started again.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import torch

from node_client.display.view import NodeView
from node_client.learning.report import StepReport, TrainingTotals
from node_client.runtime import saving
from node_client.runtime.alone import OfflineNode
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.checkpoint import newest_first
from node_client.storage.state import StateDir, write_private
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy

STEPS = 16
KILLS = 4
# About as long as a step with its checkpoint takes: the kill may come anywhere in it.
STEP_S = 0.1


class TellingView(NodeView):
    """Writes a byte after each step."""

    tell: int

    def show_step(self, report: StepReport, totals: TrainingTotals) -> None:
        super().show_step(report, totals)
        os.write(self.tell, b".")


async def train(folder: Path, *, tell: int) -> None:
    """Train up to STEPS in all, with a checkpoint after every other step."""
    left = STEPS - saved_step(folder)
    if left == 0:
        return
    settings = Settings(
        state=StateDir(folder), model="toy", arm="isolated", steps=left, save_steps=2
    )
    view = TellingView(model="toy", parameters=1000, device="cpu", arm="isolated")
    view.tell = tell
    with Verifier() as verifier:
        async with ModelWorker() as worker:
            equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
            await OfflineNode(settings, equipment=equipment).run()


def saved_step(folder: Path) -> int:
    checkpoints = newest_first(folder / "checkpoints")
    return int(checkpoints[0].name.removeprefix("step-")) if checkpoints else 0


def start(folder: Path, *, threads: int, tell: int) -> int:
    """Train in a process of its own, whose global chance is like no other's; return its id.

    It writes a byte to `tell` after each step.
    """
    child = os.fork()
    if child:
        return child
    torch.set_num_threads(threads)
    torch.manual_seed(os.getpid())
    random.seed(os.getpid())
    asyncio.run(train(folder, tell=tell))
    os._exit(0)


def make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    write_private(folder / "task.key", b"the same key" * 3)
    return folder


def main(folder: Path, *, threads: int) -> None:
    saving.SAVE_AT_MOST_EVERY_S = 0
    nowhere = os.open(os.devnull, os.O_WRONLY)
    whole, broken = make_folder(folder / "whole"), make_folder(folder / "broken")
    assert os.waitpid(start(whole, threads=threads, tell=nowhere), 0)[1] == 0
    rng = random.Random(threads)
    resumed_at = []
    for _ in range(KILLS):
        hear, tell = os.pipe()
        child = start(broken, threads=threads, tell=tell)
        os.close(tell)
        for _ in range(rng.randint(1, 4)):
            os.read(hear, 1)  # a step was made
        time.sleep(rng.uniform(0, STEP_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(hear)
        resumed_at.append(saved_step(broken))
    assert os.waitpid(start(broken, threads=threads, tell=nowhere), 0)[1] == 0
    sys.stdout.write(json.dumps(resumed_at) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), threads=int(sys.argv[2]))
