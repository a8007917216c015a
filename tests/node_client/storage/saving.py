"""Killed saves: for each operation of a save, a process that is killed right before it.

`python -m tests.node_client.storage.saving FOLDER` prints JSON for each scenario's operations.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from node_client.model.policy import Policy
from node_client.storage import checkpoint
from tests.node_client.fakes import toy_policy

WATCHED = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate")
# For each scenario, after step 2 was saved: the step that is saved next, and the limit.
SCENARIOS = {"next": (3, 2), "again": (2, 2), "limit of one": (3, 1)}


class Run:
    """A trainer whose state is determined by its step."""

    def __init__(self, policy: Policy, step: int) -> None:
        self.policy = policy
        self.steps_done = step
        with torch.no_grad():
            for parameter in policy.trainable():
                parameter.fill_(step)

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.steps_done, "momentum": torch.full((1000,), float(self.steps_done))}

    def load_state(self, state: dict[str, Any]) -> None:
        self.steps_done = state["step"]
        self.is_sound = torch.equal(state["momentum"], self.state_dict()["momentum"]) and all(
            bool((parameter == self.steps_done).all()) for parameter in self.policy.trainable()
        )


def print_line(line: dict[str, Any]) -> None:
    """Print a line for the parent process."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def die_before(operation: int, folder: Path) -> None:
    """Let this process be killed right before its n-th operation on files in the folder."""
    done = 0

    def count(name: str) -> None:
        nonlocal done
        done += 1
        if done == operation:
            print_line({"before": name})
            os.kill(os.getpid(), signal.SIGKILL)

    def audit(event: str, arguments: tuple[object, ...]) -> None:
        if event in WATCHED and str(folder) in str(arguments[0]):
            count(event)

    flush = os.fsync

    def counted_flush(handle: Any) -> None:
        count("os.fsync")
        flush(handle)

    sys.addaudithook(audit)
    os.fsync = counted_flush  # type: ignore[assignment]


def killed_saves(folder: Path, *, step: int, limit: int) -> Iterator[dict[str, Any]]:
    """Save repeatedly, killed one operation later each time, and yield the state that is left."""
    policy, operation, status = toy_policy(), 0, 1
    before = folder.with_name(f"{folder.name} before")
    for done in (1, 2):
        checkpoint.save(before, Run(policy, done), limit=limit)
    while status != 0:
        operation += 1
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(before, folder)
        child = os.fork()
        if child == 0:
            die_before(operation, folder)
            checkpoint.save(folder, Run(policy, step), limit=limit)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        resumed = Run(policy, 0)
        found = checkpoint.resume(folder, resumed)
        is_sound = found is not None and not found.problems and resumed.is_sound
        checkpoint.save(folder, Run(policy, 4), limit=limit)
        yield {
            "status": status,
            "step": resumed.steps_done,
            "is_sound": is_sound,
            "later": sorted(path.name for path in folder.iterdir()),
        }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for scenario, (step, limit) in SCENARIOS.items():
        print_line({"scenario": scenario})
        for line in killed_saves(Path(sys.argv[1]) / scenario, step=step, limit=limit):
            print_line(line)
