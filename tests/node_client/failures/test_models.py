"""`swarm-node` with a model or a device that cannot be used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from node_client.commands.problems import FAILED
from node_client.errors import ModelUnavailableError
from node_client.model.loading.contents import count_parameters
from tests.node_client.failures.ending import train
from tests.node_client.fakes import toy_policy

pytestmark = pytest.mark.slow


def make_image_model(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "vit"}))


def lose_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def cut_weights_short(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def lose_a_shard(folder: Path) -> None:
    index = {"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def damage_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def damage_header(folder: Path) -> None:
    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, None]}
    header = json.dumps({"model.embed_tokens.weight": tensor}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)


def leave_only_gguf(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    (folder / "toy-Q4_K_M.gguf").write_bytes(b"GGUF")


def empty(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def enlarge_weights(folder: Path) -> None:
    """Give the weights a size that no machine has memory for; the file takes no disk space."""
    size = 2 * 10**12
    tensor = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [0, size]}
    header = json.dumps({"model.embed_tokens.weight": tensor}).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (make_image_model, "a vit is not a language model"),
        (lose_weights, "has no weights"),
        (cut_weights_short, "model.safetensors is cut short"),
        (lose_a_shard, "model-2.safetensors is missing"),
        (damage_weights, "cut short or damaged"),
        (damage_header, "model.safetensors is damaged"),
        (leave_only_gguf, "GGUF, which cannot be trained"),
        (empty, "has no config.json"),
        (enlarge_weights, "its weights take 4000.0 GB"),
    ],
)
def test_unusable_model_folder_is_reported_with_the_reason(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    folder = tmp_path / "model"
    toy_policy().save(folder)
    spoil(folder)
    ended = train(tmp_path / "state", "--model", str(folder))
    assert ended.code == FAILED
    assert f"The model {folder}" in ended.stderr
    assert message in ended.stderr


@pytest.mark.parametrize("index", ["[]", '{"weight_map": {"a": 5}}', '{"weight_map": {"a": [1]}}'])
def test_index_of_an_unexpected_form_is_reported(tmp_path: Path, index: str) -> None:
    toy_policy().save(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(index)
    with pytest.raises(ModelUnavailableError, match=r"index\.json cannot be read"):
        count_parameters(tmp_path, name="toy")


def test_copy_of_the_weights_for_other_software_is_not_counted(tmp_path: Path) -> None:
    policy = toy_policy()
    policy.save(tmp_path)
    shutil.copy(tmp_path / "model.safetensors", tmp_path / "consolidated.safetensors")
    assert count_parameters(tmp_path, name="toy") == policy.parameters


def test_failed_fresh_run_leaves_the_checkpoints_in_place(
    tmp_path: Path,
) -> None:
    checkpoint = tmp_path / "checkpoints" / "step-00000012"
    checkpoint.mkdir(parents=True)
    assert train(tmp_path, "--fresh", "--model", "./nope").code == FAILED
    assert checkpoint.is_dir()


def test_missing_model_path_is_reported(tmp_path: Path) -> None:
    ended = train(tmp_path, "--model", "./nope")
    assert ended.code == FAILED
    assert "There is no folder ./nope and no such model on the hub." in ended.stderr
    assert "--model tiny" in ended.stderr


def test_file_is_not_accepted_as_a_model_folder(tmp_path: Path) -> None:
    file = tmp_path / "toy.gguf"
    file.write_bytes(b"GGUF")
    ended = train(tmp_path / "state", "--model", str(file))
    assert ended.code == FAILED
    assert "it is a file" in ended.stderr


@pytest.mark.parametrize("device", ["cuda:7", "mps", "xpu"])
def test_unavailable_device_is_reported_with_the_available_ones(
    tmp_path: Path, device: str
) -> None:
    ended = train(tmp_path, "--device", device)
    assert ended.code == FAILED
    assert f"The device {device} is not available" in ended.stderr
    assert "this machine has cpu" in ended.stderr


def test_invalid_device_name_is_reported_with_the_allowed_ones(tmp_path: Path) -> None:
    ended = train(tmp_path, "--device", "gpu")
    assert ended.code == FAILED
    assert "must be auto, cpu, cuda, cuda:N, mps or xpu" in ended.stderr
