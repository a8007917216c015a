"""A resumed run continues from its checkpoint as if it had not stopped."""

import json
from pathlib import Path

import pytest
import torch

from node_client.errors import CheckpointError
from node_client.learning.trainer import Trainer
from node_client.model.demo.make_model import Base, build_model
from node_client.model.demo.tokenizer import build_tokenizer
from node_client.model.demo.warmup import WarmUpConfig
from node_client.model.policy import Policy
from node_client.storage import checkpoint
from node_client.storage.manifest import Merit
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, external_sum, make_trainer, toy_policy
from tests.node_client.full_disk import limit_file_size

MIXED = ("<answer>{sum}</answer>", "<answer>99</answer>", "no idea", "{sum}")


def trainer_with_pool(verifier: Verifier) -> tuple[Trainer, PoolInMemory]:
    pool = PoolInMemory([external_sum(verifier, MIXED, counter=n) for n in range(8)])
    return make_trainer(verifier, exchange=pool), pool


def same_weights(one: Trainer, other: Trainer) -> bool:
    pairs = zip(one.policy.trainable(), other.policy.trainable(), strict=True)
    return all(torch.equal(left, right) for left, right in pairs)


def test_resumed_run_takes_the_same_next_step(verifier: Verifier, tmp_path: Path) -> None:
    straight, straight_pool = trainer_with_pool(verifier)
    straight.step()
    checkpoint.save(tmp_path, straight)
    report = straight.step()

    resumed, resumed_pool = trainer_with_pool(verifier)
    assert checkpoint.resume(tmp_path, resumed) == checkpoint.ResumePoint(step=1, problems=[])
    again = resumed.step()

    assert resumed_pool.published == straight_pool.published[4:]
    assert (again.loss, again.grad_norm, again.external_used) == (
        report.loss,
        report.grad_norm,
        report.external_used,
    )
    assert report.external_used > 0
    assert same_weights(straight, resumed)
    assert resumed.totals == straight.totals


def test_first_start_has_nothing_to_resume(verifier: Verifier, tmp_path: Path) -> None:
    assert checkpoint.resume(tmp_path / "none", make_trainer(verifier)) is None


def test_two_newest_checkpoints_are_kept(verifier: Verifier, tmp_path: Path) -> None:
    trainer = make_trainer(verifier)
    for trainer.steps_done in (1, 2, 3):
        checkpoint.save(tmp_path, trainer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000002", "step-00000003"]


def test_same_step_can_be_saved_again(verifier: Verifier, tmp_path: Path) -> None:
    trainer = make_trainer(verifier)
    assert checkpoint.save(tmp_path, trainer) == checkpoint.save(tmp_path, trainer)
    assert checkpoint.resume(tmp_path, trainer) is not None


@pytest.mark.parametrize(
    "file",
    [
        "trainer.json",
        "trainer.safetensors",
        "run.json",
        "policy/model.safetensors",
        "policy/config.json",
        "manifest.json",
    ],
)
def test_corrupt_checkpoint_falls_back_to_the_previous_one(
    verifier: Verifier, tmp_path: Path, file: str
) -> None:
    trainer, _ = trainer_with_pool(verifier)
    trainer.step()
    checkpoint.save(tmp_path, trainer)
    trainer.step()
    damaged = checkpoint.save(tmp_path, trainer) / file
    content = damaged.read_bytes()
    damaged.write_bytes(content[: len(content) // 2])

    fresh, _ = trainer_with_pool(verifier)
    resumed = checkpoint.resume(tmp_path, fresh)
    assert resumed is not None
    assert resumed.step == fresh.steps_done == 1
    (problem,) = resumed.problems
    assert "step-00000002" in problem
    assert Path(file).name in problem


def test_new_checkpoint_is_kept_despite_damaged_ones_with_higher_steps(
    verifier: Verifier, tmp_path: Path
) -> None:
    trainer = make_trainer(verifier)
    for trainer.steps_done in (1, 9):
        written = checkpoint.save(tmp_path, trainer)
    (written / "manifest.json").unlink()
    for trainer.steps_done in (2, 3):
        assert checkpoint.save(tmp_path, trainer, limit=1).exists()


def test_damaged_checkpoints_do_not_count_and_are_removed_once_passed(
    verifier: Verifier, tmp_path: Path
) -> None:
    trainer = make_trainer(verifier)
    for trainer.steps_done in (1, 4):
        written = checkpoint.save(tmp_path, trainer)
    (written / "manifest.json").unlink()
    assert checkpoint.resume(tmp_path, trainer) is not None
    kept = []
    for trainer.steps_done in (2, 3, 4):
        checkpoint.save(tmp_path, trainer)
        kept.append(sorted(path.name for path in tmp_path.iterdir()))
    assert kept == [
        ["damaged-step-00000004", "step-00000001", "step-00000002"],
        ["damaged-step-00000004", "step-00000002", "step-00000003"],
        ["step-00000003", "step-00000004"],
    ]


def test_missing_file_is_detected(verifier: Verifier, tmp_path: Path) -> None:
    (checkpoint.save(tmp_path, make_trainer(verifier)) / "trainer.safetensors").unlink()
    resumed = checkpoint.resume(tmp_path, make_trainer(verifier))
    assert resumed is not None
    assert resumed.step == 0
    assert "trainer.safetensors is missing" in resumed.problems[0]


def test_draft_of_a_crashed_save_is_not_a_checkpoint(verifier: Verifier, tmp_path: Path) -> None:
    written = checkpoint.save(tmp_path, make_trainer(verifier))
    written.rename(tmp_path / f".{written.name}.partial")
    assert checkpoint.resume(tmp_path, make_trainer(verifier)) is None
    checkpoint.save(tmp_path, make_trainer(verifier))
    assert [path.name for path in tmp_path.iterdir()] == [written.name]


def test_leftovers_of_crashed_saves_are_removed(verifier: Verifier, tmp_path: Path) -> None:
    hidden = (".step-00000003.partial", ".step-00000001.gone", ".damaged-step-00000002.gone")
    for leftover in (*hidden, "step-00000009.before"):
        (tmp_path / leftover / "policy").mkdir(parents=True)
    (tmp_path / "step-00000009").mkdir()
    trainer = make_trainer(verifier)
    trainer.steps_done = 9
    checkpoint.save(tmp_path, trainer)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000009"]


def test_checkpoint_that_is_being_replaced_can_be_resumed(
    verifier: Verifier, tmp_path: Path
) -> None:
    trainer, _ = trainer_with_pool(verifier)
    trainer.step()
    written = checkpoint.save(tmp_path, trainer)
    written.rename(tmp_path / f"{written.name}.before")
    resumed = checkpoint.resume(tmp_path, make_trainer(verifier))
    assert resumed == checkpoint.ResumePoint(step=1, problems=[])


def save_rated(folder: Path, trainer: Trainer, *scores: float | None, season: str = "sums") -> None:
    for score in scores:
        trainer.steps_done += 1
        merit = None if score is None else Merit(kind="judge_score", season=season, value=score)
        checkpoint.save(folder, trainer, merit=merit, limit=2)


def steps_kept(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in folder.iterdir())


def test_best_checkpoint_is_kept_beside_the_newest(verifier: Verifier, tmp_path: Path) -> None:
    trainer = make_trainer(verifier)
    save_rated(tmp_path, trainer, 0.2, 0.6, 0.4, 0.5, None)
    assert steps_kept(tmp_path) == [2, 4, 5]


def test_scores_of_different_seasons_are_not_compared(verifier: Verifier, tmp_path: Path) -> None:
    trainer = make_trainer(verifier)
    save_rated(tmp_path, trainer, 0.9)
    save_rated(tmp_path, trainer, 0.3, 0.1, 0.2, season="harder sums")
    assert steps_kept(tmp_path) == [2, 3, 4]


def test_additional_run_data_are_restored(verifier: Verifier, tmp_path: Path) -> None:
    trainer = make_trainer(verifier)
    checkpoint.save(tmp_path, trainer, run={"lifetime": {"tokens": 7}})
    resumed = checkpoint.resume(tmp_path, trainer)
    assert resumed is not None
    assert resumed.run == {"lifetime": {"tokens": 7}}


def test_checkpoint_of_an_older_format_is_refused_with_a_remedy(
    verifier: Verifier, tmp_path: Path
) -> None:
    folder, aside = tmp_path / "checkpoints", tmp_path / "checkpoints-of-before"
    written = checkpoint.save(folder, make_trainer(verifier))
    manifest = json.loads((written / "manifest.json").read_text())
    del manifest["format"]
    (written / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="another version") as caught:
        checkpoint.resume(folder, make_trainer(verifier))
    assert f"Rename the folder {folder} to {aside}" in caught.value.fix
    folder.rename(aside)
    weights = aside / written.name / "policy"
    assert f"--model {weights}" in caught.value.fix
    policy = Policy.load(str(weights), device="cpu")
    trainer = make_trainer(verifier, policy=policy)
    assert checkpoint.resume(folder, trainer) is None


@pytest.mark.parametrize("most_bytes", [1000, 20_000])
def test_full_disk_fails_one_save_and_leaves_no_partial_files(
    verifier: Verifier, tmp_path: Path, most_bytes: int
) -> None:
    trainer, _ = trainer_with_pool(verifier)
    trainer.step()
    checkpoint.save(tmp_path, trainer)
    trainer.step()
    with limit_file_size(most_bytes), pytest.raises(OSError, match="File too large"):
        checkpoint.save(tmp_path, trainer)
    assert steps_kept(tmp_path) == [1]
    checkpoint.save(tmp_path, trainer)
    assert steps_kept(tmp_path) == [1, 2]


def test_checkpoint_contains_no_pickled_data(verifier: Verifier, tmp_path: Path) -> None:
    trainer, _ = trainer_with_pool(verifier)
    trainer.step()
    written = checkpoint.save(tmp_path, trainer)
    files = [path for path in written.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".jinja"}


def test_checkpoint_of_another_model_is_refused(verifier: Verifier, tmp_path: Path) -> None:
    checkpoint.save(tmp_path, make_trainer(verifier))
    wide = Base(hidden_size=32, layers=1, heads=2, warm_up=WarmUpConfig(steps=1))
    other = Policy(model=build_model(wide, seed=0), tokenizer=build_tokenizer(), name="wide")
    with pytest.raises(CheckpointError, match="trained from toy") as caught:
        checkpoint.resume(tmp_path, make_trainer(verifier, policy=other))
    assert "--state-dir" in caught.value.fix


def test_saved_policy_is_an_ordinary_model_folder(verifier: Verifier, tmp_path: Path) -> None:
    trainer, _ = trainer_with_pool(verifier)
    trainer.step()
    written = checkpoint.save(tmp_path, trainer)
    loaded = Policy.load(str(written / "policy"), device="cpu")
    assert all(
        torch.equal(left, right)
        for left, right in zip(loaded.trainable(), trainer.policy.trainable(), strict=True)
    )
    assert json.loads((written / "manifest.json").read_text())["model"] == toy_policy().name
