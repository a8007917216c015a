"""`swarm-node` with a model by its hub name: one download, and a search that ends in seconds."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from node_client.commands.problems import FAILED
from tests.node_client.fakes import toy_policy
from tests.node_client.model_hub import ModelHub

pytestmark = pytest.mark.slow

NAME = "somebody/toy"
# Importing torch takes most of it; with repeated requests to the hub it took 51 s.
SECONDS = 30


def train(
    folder: Path, *options: str, wrapper: Sequence[str] = (), **environment: str
) -> subprocess.CompletedProcess[str]:
    """Train one step with the model `NAME` in a process that prints events.

    `wrapper` is put in front of the command, for example to limit the process.
    """
    command = (sys.executable, "-m", "node_client", "train", "--offline", "--steps", "1", "--json")
    return subprocess.run(
        (*wrapper, *command, "--state-dir", str(folder / "state"), "--model", NAME, *options),
        env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HOME": str(folder / "home"), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_model_is_downloaded_with_progress_and_then_used_without_the_hub(
    tmp_path: Path,
) -> None:
    toy_policy().save(tmp_path / "model")
    with ModelHub(NAME, tmp_path / "model") as hub:
        first = train(tmp_path, HF_ENDPOINT=hub.address)
    assert first.returncode == 0, first.stderr
    events = [json.loads(line)["event"] for line in first.stdout.splitlines()]
    assert events[0] == "started"
    assert events[-1] == "stopped"
    assert "Downloading: " in first.stderr
    away = train(tmp_path, "--fresh", HF_ENDPOINT=hub.address)
    assert away.returncode == 0, away.stderr
    assert "was downloaded before" in away.stderr
    offline = train(tmp_path, "--fresh", HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr


def test_copy_of_the_weights_for_other_software_is_not_downloaded(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    copy = tmp_path / "model" / "consolidated.safetensors"
    shutil.copy(tmp_path / "model" / "model.safetensors", copy)
    with ModelHub(NAME, tmp_path / "model") as hub:
        ended = train(tmp_path, HF_ENDPOINT=hub.address)
    assert ended.returncode == 0, ended.stderr
    assert not [path for path in hub.requested if path.endswith(copy.name)]
    offline = train(tmp_path, "--fresh", HF_HUB_OFFLINE="1")
    assert offline.returncode == 0, offline.stderr


class HubWithOtherFormat(ModelHub):
    """Also lists a file that the client does not read, and that is larger than any disk."""

    def describe(self, path: str) -> Any:
        described = super().describe(path)
        if isinstance(described, dict) and "siblings" in described:
            described["siblings"].append({"rfilename": "model.onnx", "size": 10**18})
        return described


def test_files_that_are_not_downloaded_need_no_space_on_the_disk(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    with HubWithOtherFormat(NAME, tmp_path / "model") as hub:
        ended = train(tmp_path, HF_ENDPOINT=hub.address)
    assert ended.returncode == 0, ended.stderr


def test_model_name_unknown_to_the_hub_is_reported(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    with ModelHub("somebody/else", tmp_path / "model") as hub:
        ended = train(tmp_path, HF_ENDPOINT=hub.address)
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert f"There is no folder {NAME} and no such model on the hub." in ended.stderr


def test_search_for_a_model_fails_in_seconds_if_the_hub_is_unreachable(tmp_path: Path) -> None:
    began = monotonic()
    ended = train(tmp_path, HF_ENDPOINT="http://127.0.0.1:9")
    assert monotonic() - began < SECONDS
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert f"There is no folder {NAME}, and the hub does not answer" in ended.stderr


def test_download_that_cannot_be_written_is_not_blamed_on_the_hub(tmp_path: Path) -> None:
    """A limit of the file size stands for a disk that fills up during the download."""
    toy_policy().save(tmp_path / "model")
    with ModelHub(NAME, tmp_path / "model") as hub:
        ended = train(tmp_path, wrapper=("prlimit", "--fsize=20000"), HF_ENDPOINT=hub.address)
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert "its download cannot be stored in" in ended.stderr
    assert "File too large" in ended.stderr
    assert "the hub does not answer" not in ended.stderr


def test_download_from_an_unreachable_xet_storage_is_reported(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    quickly = {"HF_XET_CLIENT_RETRY_MAX_DURATION": "1s"}
    with ModelHub(NAME, tmp_path / "model", xet="http://127.0.0.1:9") as hub:
        ended = train(tmp_path, HF_ENDPOINT=hub.address, **quickly)
    assert (ended.returncode, ended.stdout) == (FAILED, "")
    assert "its download from Xet, the hub's storage, failed" in ended.stderr
    assert "HF_HUB_DISABLE_XET=1" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_older_download_is_used_if_a_newer_version_cannot_be_stored(tmp_path: Path) -> None:
    toy_policy().save(tmp_path / "model")
    with ModelHub(NAME, tmp_path / "model") as hub:
        train(tmp_path, HF_ENDPOINT=hub.address)
    toy_policy(seed=1).save(tmp_path / "newer")
    with ModelHub(NAME, tmp_path / "newer", commit="d" * 40) as hub:
        full_disk = ("prlimit", "--fsize=20000")
        ended = train(tmp_path, "--fresh", wrapper=full_disk, HF_ENDPOINT=hub.address)
    assert "cannot be stored in" in ended.stderr
    assert "was downloaded before" in ended.stderr
    assert json.loads(ended.stdout.splitlines()[0])["event"] == "started"
