"""A container's limit is read from the files of its control group."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from node_client.model import preflight
from node_client.model.container import left_in_container
from node_client.model.preflight import free_bytes

GB = 10**9
V2 = {
    "memory.max": f"{8 * GB}\n",
    "memory.current": f"{3 * GB}\n",
    "memory.stat": f"anon 5\ninactive_file {GB}\nactive_file 7\n",
}
V1 = {
    "memory/memory.limit_in_bytes": f"{8 * GB}\n",
    "memory/memory.usage_in_bytes": f"{3 * GB}\n",
    "memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {GB}\n",
}


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)


@pytest.mark.parametrize("files", [V2, V1])
def test_a_limit_leaves_what_is_not_used_and_what_only_caches(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    write(tmp_path, files)
    assert left_in_container(tmp_path) == 6 * GB


def test_more_in_use_than_the_limit_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path, V2 | {"memory.current": f"{20 * GB}\n"})
    assert left_in_container(tmp_path) == 0


@pytest.mark.parametrize("files", [{}, V2 | {"memory.max": "max\n"}])
def test_without_a_limit_nothing_is_told(tmp_path: Path, files: Mapping[str, str]) -> None:
    write(tmp_path, files)
    assert left_in_container(tmp_path) is None


def test_training_is_planned_within_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preflight, "left_in_container", lambda: 1000)
    assert free_bytes(torch.device("cpu")) == 1000
