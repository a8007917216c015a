"""A run of the lab, in processes that are killed.

python -m tests.node_client.lab.run_process FOLDER: makes the run of `experiment()`'s last arm.

python -m tests.node_client.lab.run_process FOLDER KILLS: makes it without a break in FOLDER/whole,
and in FOLDER/broken, where it is killed so many times at random moments and started again until it
is done. Prints the rounds at which it was started again.
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

# About as long as a round with its snapshot takes: the kill may come anywhere in it.
ROUND_S = 0.3


def run_in(folder: Path) -> Run:
    return Run(folder, experiment().arms[-1], 1)


def make(folder: Path, *, tell: int | None = None) -> None:
    """Make the run, with a snapshot after every round; write a byte to `tell` after each.

    Who tells waits before the end: it is to be killed, however long that takes.
    """

    def should_continue(rounds_done: int) -> bool:
        if tell is not None:
            os.write(tell, b".")
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


def start(folder: Path, *, tell: int) -> int:
    """Make the run in a process of its own, whose global chance is its own; return its id."""
    child = os.fork()
    if child:
        return child
    random.seed(os.getpid())
    make(folder, tell=tell)
    os._exit(0)


def saved_round(folder: Path) -> int:
    found = sorted(run_in(folder).snapshot_folder.glob("round-*"))
    return int(found[-1].name.removeprefix("round-")) if found else 0


def kill_and_go_on(folder: Path, *, kills: int) -> None:
    make(folder / "whole")
    broken, rng = folder / "broken", random.Random(kills)
    resumed_at = []
    for kill in range(kills):
        hear, tell = os.pipe()
        child = start(broken, tell=tell)
        os.close(tell)
        # When the second round is made there is a snapshot of the first; later ones begin there.
        for _ in range(1 if kill else 2):
            os.read(hear, 1)
        time.sleep(rng.uniform(0, ROUND_S))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(hear)
        resumed_at.append(saved_round(broken))
    make(broken)
    sys.stdout.write(json.dumps(resumed_at) + "\n")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        kill_and_go_on(Path(sys.argv[1]), kills=int(sys.argv[2]))
    else:
        make(Path(sys.argv[1]))
