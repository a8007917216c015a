"""A run of the lab, in processes that are killed.

`python -m tests.node_client.lab.run_process FOLDER` makes the run of `experiment()`'s last arm.

`python -m tests.node_client.lab.run_process FOLDER KILLS` makes it without interruption in
FOLDER/whole, and in FOLDER/broken, where it is killed KILLS times at random moments and restarted
until it is done. Prints the rounds at which it was restarted.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from node_client.lab.caching import CachingVerifier
from node_client.lab.runs import Run, make_run
from tests.node_client.lab.experiments import experiment

# About the duration of a round with its snapshot: the kill may occur at any point in it.
ROUND_S = 0.3


def run_in(folder: Path) -> Run:
    return Run(folder, experiment().arms[-1], 1)


def make(folder: Path, *, signal_fd: int | None = None) -> None:
    """Make the run, with a snapshot after every round; write a byte to `signal_fd` after each.

    With `signal_fd` the run waits before its end: it has to be killed, however long that takes.
    """

    def should_continue(rounds_done: int) -> bool:
        if signal_fd is not None:
            os.write(signal_fd, b".")
            if rounds_done == experiment().rounds - 1:
                signal.pause()
        return True

    with CachingVerifier() as verifier:
        make_run(
            experiment(),
            run_in(folder),
            verifier=verifier,
            should_continue=should_continue,
            snapshot_every_s=0,
        )


def start(folder: Path, *, signal_fd: int) -> int:
    """Make the run in a new process with its own global random state; return its process id."""
    child = os.fork()
    if child:
        return child
    random.seed(os.getpid())
    make(folder, signal_fd=signal_fd)
    os._exit(0)


def saved_round(folder: Path) -> int:
    found = sorted(run_in(folder).snapshot_folder.glob("round-*"))
    return int(found[-1].name.removeprefix("round-")) if found else 0


def kill_and_resume(folder: Path, *, kills: int) -> None:
    make(folder / "whole")
    broken, rng = folder / "broken", random.Random(kills)
    resumed_at = []
    for kill in range(kills):
        read_fd, signal_fd = os.pipe()
        child = start(broken, signal_fd=signal_fd)
        os.close(signal_fd)
        # After the second round there is a snapshot of the first; later processes start from it.
        for _ in range(1 if kill else 2):
            os.read(read_fd, 1)
        time.sleep(rng.uniform(0, ROUND_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(read_fd)
        resumed_at.append(saved_round(broken))
    make(broken)
    sys.stdout.write(json.dumps(resumed_at) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_and_resume(Path(sys.argv[1]), kills=int(sys.argv[2]))
    else:
        make(Path(sys.argv[1]))
