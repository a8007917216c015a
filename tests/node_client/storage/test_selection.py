from pathlib import Path

import pytest

from node_client.errors import CheckpointError
from node_client.storage.export import choose_checkpoint
from node_client.storage.manifest import FORMAT, Manifest, digest_files, write_manifest


def checkpoint(folder: Path, step: int, *, format: int = FORMAT) -> Path:
    path = folder / f"step-{step:08d}"
    (path / "policy").mkdir(parents=True)
    (path / "policy" / "config.json").write_text("{}")
    manifest = Manifest(
        step=step,
        model="toy",
        parameters=1,
        tokenizer="abc",
        files=digest_files(path),
        format=format,
    )
    write_manifest(path, manifest)
    return path


def test_newest_checkpoint_is_chosen_unless_another_is_named(tmp_path: Path) -> None:
    paths = [checkpoint(tmp_path, step) for step in (3, 20)]
    assert choose_checkpoint(tmp_path).path == paths[1]
    assert choose_checkpoint(tmp_path, "3").path == paths[0]
    assert choose_checkpoint(tmp_path / "elsewhere", str(paths[0])).manifest.step == 3
    assert choose_checkpoint(tmp_path).model == paths[1] / "policy"


def test_damaged_newest_checkpoint_is_skipped(tmp_path: Path) -> None:
    sound, damaged = (checkpoint(tmp_path, step) for step in (3, 20))
    (damaged / "policy" / "config.json").write_text("{,")
    assert choose_checkpoint(tmp_path).path == sound


def test_damaged_named_checkpoint_is_refused(tmp_path: Path) -> None:
    (checkpoint(tmp_path, 3) / "policy" / "config.json").unlink()
    with pytest.raises(CheckpointError, match="is missing"):
        choose_checkpoint(tmp_path, "3")


def test_missing_step_is_refused_with_the_available_ones(tmp_path: Path) -> None:
    checkpoint(tmp_path, 3)
    with pytest.raises(CheckpointError) as refusal:
        choose_checkpoint(tmp_path, "4")
    assert "3" in refusal.value.fix


def test_checkpoint_of_another_version_is_refused_with_the_path_of_its_model(
    tmp_path: Path,
) -> None:
    path = checkpoint(tmp_path, 3, format=1)
    with pytest.raises(CheckpointError) as refusal:
        choose_checkpoint(tmp_path, "3")
    assert str(path / "policy") in refusal.value.fix


def test_folder_without_checkpoints_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no intact checkpoint"):
        choose_checkpoint(tmp_path)
