"""A node that trains alone, in processes that are killed.

`python -m tests.node_client.runtime.training_process FOLDER THREADS` trains without interruption
in FOLDER/whole, and in FOLDER/broken with the same key, killed at random moments and restarted
until it is done. Prints the steps at which it was restarted.
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
from node_client.runtime.alone import train_offline
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.checkpoint import newest_first
from node_client.storage.state import StateDir, write_private
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy

STEPS = 16
KILLS = 4
# About the duration of a step with its checkpoint: the kill may occur at any point in it.
STEP_S = 0.1


class SignallingView(NodeView):
    """Writes a byte after each step."""

    signal_fd: int

    def show_step(self, report: StepReport, totals: TrainingTotals) -> None:
        super().show_step(report, totals)
        os.write(self.signal_fd, b".")


async def train(folder: Path, *, signal_fd: int) -> None:
    """Train until STEPS are done in total, with a checkpoint after every second step."""
    left = STEPS - saved_step(folder)
    if left == 0:
        return
    settings = Settings(
        state=StateDir(folder), model="toy", arm="isolated", steps=left, save_steps=2
    )
    view = SignallingView(model="toy", parameters=1000, device="cpu", arm="isolated")
    view.signal_fd = signal_fd
    with Verifier() as verifier:
        async with ModelWorker() as worker:
            equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
            await train_offline(settings, equipment=equipment).run()


def saved_step(folder: Path) -> int:
    checkpoints = newest_first(folder / "checkpoints")
    return int(checkpoints[0].name.removeprefix("step-")) if checkpoints else 0


def start(folder: Path, *, threads: int, signal_fd: int) -> int:
    """Train in a new process with its own global random state; return its process id.

    It writes a byte to `signal_fd` after each step.
    """
    child = os.fork()
    if child:
        return child
    torch.set_num_threads(threads)
    torch.manual_seed(os.getpid())
    random.seed(os.getpid())
    asyncio.run(train(folder, signal_fd=signal_fd))
    os._exit(0)


def make_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    write_private(folder / "task.key", b"the same key".ljust(32))
    return folder


def main(folder: Path, *, threads: int) -> None:
    saving.SAVE_AT_MOST_EVERY_S = 0
    nowhere = os.open(os.devnull, os.O_WRONLY)
    whole, broken = make_folder(folder / "whole"), make_folder(folder / "broken")
    assert os.waitpid(start(whole, threads=threads, signal_fd=nowhere), 0)[1] == 0
    rng = random.Random(threads)
    resumed_at = []
    for _ in range(KILLS):
        read_fd, signal_fd = os.pipe()
        child = start(broken, threads=threads, signal_fd=signal_fd)
        os.close(signal_fd)
        for _ in range(rng.randint(1, 4)):
            os.read(read_fd, 1)  # a step was made
        time.sleep(rng.uniform(0, STEP_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read_fd)
        resumed_at.append(saved_step(broken))
    assert os.waitpid(start(broken, threads=threads, signal_fd=nowhere), 0)[1] == 0
    sys.stdout.write(json.dumps(resumed_at) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), threads=int(sys.argv[2]))
