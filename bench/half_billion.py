"""`make bench-half-billion`: train Qwen2.5-0.5B with random weights, in 24 GB without a GPU.

A process loads the model by `from_pretrained`, makes a step, writes a checkpoint, and makes a
second step. Another process resumes from the checkpoint and must make an identical second step. The
prompts use a chat template. `--lora` trains adapters.
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

from bench.node.model import build_model
from bench.node.ours import make_trainer
from bench.node.pace import peak_memory
from bench.node.sizes import SIZES
from bench.node.work import LenientVerifier
from bench.report import print_table
from node_client.learning.trainer import Trainer
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from node_client.storage import checkpoint

LARGE = SIZES["large"]
MEMORY_BYTES = 24 * 2**30
ResultT = TypeVar("ResultT")


def measure(folder: Path, what: str, job: Callable[[], ResultT]) -> ResultT:
    """Run `job` and return its result.

    Appends a JSON object to `log.jsonl`: `what`, seconds `s` and peak memory in `bytes`.
    """
    start = time.perf_counter()
    result = job()
    entry = {"what": what, "s": time.perf_counter() - start, "bytes": peak_memory()}
    with (folder / "log.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")
    return result


def train(folder: Path, config: TrainConfig) -> None:
    """Load the model, make a training step, save a checkpoint, make a second step.

    Writes the fingerprint of the weights after the second step to `went-on.pt`.
    """
    model = str(folder / "model")
    policy = measure(folder, "load the model", lambda: Policy.load(model, device="cpu"))
    with LenientVerifier() as verifier:
        trainer = make_trainer(LARGE, policy=policy, verifier=verifier, config=config)
        measure(folder, "the first step", trainer.step)
        checkpoints = folder / "checkpoints"
        measure(folder, "save a checkpoint", lambda: checkpoint.save(checkpoints, trainer))
        measure(folder, "the second step", trainer.step)
        torch.save(_fingerprint(trainer), folder / "went-on.pt")


def resume(folder: Path, config: TrainConfig) -> None:
    """Resume from the checkpoint, in a new process, and make the second step again.

    Raises SystemExit if the fingerprint of the weights differs from the one that `train` wrote.
    """
    policy = Policy.load(str(folder / "model"), device="cpu")
    with LenientVerifier() as verifier:
        trainer = make_trainer(LARGE, policy=policy, verifier=verifier, config=config)
        measure(folder, "resume", lambda: checkpoint.resume(folder / "checkpoints", trainer))
        measure(folder, "the second step again", trainer.step)
        expected = torch.load(folder / "went-on.pt")
        pairs = zip(_fingerprint(trainer), expected, strict=True)
        if not all(torch.equal(here, there) for here, there in pairs):
            raise SystemExit("the resumed run took another step")


def _fingerprint(trainer: Trainer) -> list[torch.Tensor]:
    """Return the sum of each trained tensor and of each remainder of a weight stored in halves."""
    policy = trainer.policy
    parts = (*policy.trainable(), *policy.remainders.values())
    return [part.detach().double().sum() for part in parts]


def report(folder: Path) -> int:
    """Print the log; return 1 if the peak memory exceeded MEMORY_BYTES, else 0."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    print_table(
        "Qwen2.5-0.5B's shape, random weights",
        ("", "seconds", "peak memory, GB"),
        [(each["what"], f"{each['s']:.1f}", f"{each['bytes'] / 1e9:.2f}") for each in entries],
    )
    return int(max(entry["bytes"] for entry in entries) > MEMORY_BYTES)


def main(arguments: list[str]) -> int:
    """Run `train` and `resume` in a process each, and print the log; return 1 on failure.

    A peak memory above MEMORY_BYTES is a failure too.
    """
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
