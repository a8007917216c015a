"""`make bench-half-billion`: Qwen2.5-0.5B, with random weights, through all that a node does.

Loading by `from_pretrained`, a chat template, steps of training, a checkpoint, another process that
resumes it, and the export; within 24 GB of memory, without a GPU. `--lora` trains adapters.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

import torch
from rich.console import Console
from rich.table import Table

from bench.node_model import build_model
from bench.node_ours import make_trainer
from bench.node_pace import peak_memory
from bench.node_sizes import SIZES
from bench.node_work import LenientVerifier
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from node_client.storage import checkpoint

LARGE = SIZES["large"]
MEMORY_BYTES = 24 * 2**30
ResultT = TypeVar("ResultT")


class StepLog:
    """What was done, with the seconds it took and the peak memory after it, written as it comes."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def measure(self, what: str, job: Callable[[], ResultT]) -> ResultT:
        """Do something and write down what it took."""
        start = time.perf_counter()
        result = job()
        entry = {"what": what, "s": time.perf_counter() - start, "bytes": peak_memory()}
        with self._path.open("a") as file:
            file.write(json.dumps(entry) + "\n")
        return result


def train(folder: Path, config: TrainConfig) -> None:
    """Load, make a step, save, make another; leave what its weights came to."""
    log = StepLog(folder / "log.jsonl")
    policy = log.measure("load the model", lambda: Policy.load(str(folder / "model"), device="cpu"))
    with LenientVerifier() as verifier:
        trainer = make_trainer(LARGE, policy=policy, verifier=verifier, config=config)
        log.measure("the first step", trainer.step)
        log.measure(
            "save a checkpoint",
            lambda: checkpoint.save(folder / "checkpoints", trainer),
        )
        log.measure("the second step", trainer.step)
        torch.save(_fingerprint(trainer), folder / "went-on.pt")


def resume(folder: Path, config: TrainConfig) -> None:
    """Go on from the checkpoint in a new process, and compare with the run that went on."""
    log = StepLog(folder / "log.jsonl")
    policy = Policy.load(str(folder / "model"), device="cpu")
    with LenientVerifier() as verifier:
        trainer = make_trainer(LARGE, policy=policy, verifier=verifier, config=config)
        log.measure("resume", lambda: checkpoint.resume(folder / "checkpoints", trainer))
        log.measure("the second step again", trainer.step)
        expected = torch.load(folder / "went-on.pt")
        pairs = zip(_fingerprint(trainer), expected, strict=True)
        if not all(torch.equal(here, there) for here, there in pairs):
            raise SystemExit("the resumed run took another step")


def _fingerprint(trainer: Trainer) -> list[torch.Tensor]:
    """Return one number of each trained tensor, by which equal weights are equal."""
    policy = trainer.policy
    parts = (*policy.trainable(), *policy.remainders.values())
    return [part.detach().double().sum() for part in parts]


def report(folder: Path) -> int:
    """Print the log; 1 if the memory was not enough."""
    table = Table(title="Qwen2.5-0.5B's shape, random weights")
    for heading in ("", "seconds", "peak memory, GB"):
        table.add_column(heading, justify="right" if heading else "left")
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    for entry in entries:
        table.add_row(entry["what"], f"{entry['s']:.1f}", f"{entry['bytes'] / 1e9:.2f}")
    Console().print(table)
    return int(max(entry["bytes"] for entry in entries) > MEMORY_BYTES)


def main(arguments: list[str]) -> int:
    """Do it all, each process of a node's life in one of its own."""
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.half_billion")
    parser.add_argument("--lora", action="store_true", help="train adapters, not all weights")
    lora = parser.parse_args(arguments).lora
    config = TrainConfig(arm="isolated", precision=LARGE.precision, lora_r=16 if lora else 0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        build_model(LARGE, folder / "model")
        for part in (train, resume):
            process = get_context("spawn").Process(target=part, args=(folder, config))
            process.start()
            process.join()
            if process.exitcode:
                return 1
        return report(folder)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
