"""For all settings, a checkpoint contains what the run needs to continue bit for bit."""

from pathlib import Path

import pytest

from node_client.learning.trainer import Trainer
from node_client.settings.train_config import TrainConfig
from node_client.storage import checkpoint
from node_client.storage.manifest import read_manifest
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer

MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")
RATE = 1e-2
SETTINGS = {
    "defaults": TrainConfig(learning_rate=RATE),
    "history": TrainConfig(learning_rate=RATE, resampling="history", history_epoch=4),
    "dynamic": TrainConfig(learning_rate=RATE, resampling="dynamic"),
    "staged": TrainConfig(learning_rate=RATE, curriculum="staged"),
    "ladder": TrainConfig(learning_rate=RATE, curriculum="ladder"),
    "complete SRPO": TrainConfig(
        learning_rate=RATE, curriculum="staged+ladder", resampling="history", history_epoch=4
    ),
    "mix auto": TrainConfig(learning_rate=RATE, mix="auto"),
    "two passes": TrainConfig(learning_rate=RATE, num_iterations=2),
    "KL term": TrainConfig(learning_rate=RATE, beta=0.04),
    "bf16": TrainConfig(learning_rate=RATE, precision="bf16"),
    "bf16, many micro-batches": TrainConfig(
        learning_rate=RATE, precision="bf16", micro_batch_tokens=64
    ),
    "bf16, checkpointed, KL term": TrainConfig(
        learning_rate=RATE, precision="bf16", gradient_checkpointing=True, beta=0.04
    ),
    "fp16": TrainConfig(learning_rate=RATE, precision="fp16"),
    "adapters": TrainConfig(learning_rate=RATE, lora_r=2),
    "evaluated": TrainConfig(learning_rate=RATE, eval_tasks=4, eval_every=2),
}


def trainer_with(config: TrainConfig, verifier: Verifier) -> Trainer:
    pool = PoolInMemory([external_sum(verifier, MIXED, counter=n) for n in range(40)])
    return make_trainer(verifier, config=config, exchange=pool)


def hashes_after(trainer: Trainer, folder: Path, *, steps: int) -> dict[str, str]:
    for _ in range(steps):
        trainer.step()
    return read_manifest(checkpoint.save(folder, trainer)).files


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_resumed_run_ends_with_the_same_bits(verifier: Verifier, tmp_path: Path, name: str) -> None:
    straight = trainer_with(SETTINGS[name], verifier)
    hashes_after(straight, tmp_path / "half", steps=2)
    whole = hashes_after(straight, tmp_path / "whole", steps=2)

    resumed = trainer_with(SETTINGS[name], verifier)
    assert checkpoint.resume(tmp_path / "half", resumed) == checkpoint.ResumePoint(2, [])
    assert hashes_after(resumed, tmp_path / "resumed", steps=2) == whole


@pytest.mark.parametrize(("before", "after"), [("defaults", "bf16"), ("bf16", "defaults")])
def test_checkpoint_is_the_same_in_either_precision(
    verifier: Verifier, tmp_path: Path, before: str, after: str
) -> None:
    trainer = trainer_with(SETTINGS[before], verifier)
    written = hashes_after(trainer, tmp_path / "before", steps=2)
    other = trainer_with(SETTINGS[after], verifier)
    checkpoint.resume(tmp_path / "before", other)
    assert hashes_after(other, tmp_path / "after", steps=0) == written
    other.step()
