"""Memory limits: a container's from the files of its control group, and the owner's on a GPU.

Tests of the latter need no GPU: torch's calls are recorded.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch

from node_client.commands.doctor import check_model
from node_client.errors import SettingsError
from node_client.model.memory import estimates
from node_client.model.memory.estimates import free_bytes
from node_client.model.memory.limits import free_in_container, limit_memory

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
def test_free_memory_under_a_limit_includes_caches(
    tmp_path: Path, files: Mapping[str, str]
) -> None:
    write(tmp_path, files)
    assert free_in_container(tmp_path) == 6 * GB


def test_usage_above_the_limit_leaves_nothing_free(tmp_path: Path) -> None:
    write(tmp_path, V2 | {"memory.current": f"{20 * GB}\n"})
    assert free_in_container(tmp_path) == 0


@pytest.mark.parametrize("files", [{}, V2 | {"memory.max": "max\n"}])
def test_container_without_a_limit_returns_none(tmp_path: Path, files: Mapping[str, str]) -> None:
    write(tmp_path, files)
    assert free_in_container(tmp_path) is None


def test_training_is_planned_within_the_container_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "free_in_container", lambda: 1000)
    assert free_bytes(torch.device("cpu")) == 1000


GIB = 1 << 30


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, torch.device]]:
    """Simulate a GPU of 16 GiB: 12 GiB are free, 2 GiB are reserved by this process."""
    limits: list[tuple[float, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(
        torch.cuda,
        "set_per_process_memory_fraction",
        lambda fraction, device: limits.append((fraction, device)),
    )
    monkeypatch.setattr(torch.cuda, "get_per_process_memory_fraction", lambda device: limits[-1][0])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (12 * GIB, 16 * GIB))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 2 * GIB)
    return limits


@pytest.mark.parametrize(("device", "chosen"), [("auto", "cuda"), ("cuda:1", "cuda:1")])
def test_limit_is_set_on_the_chosen_gpu(
    gpu: list[tuple[float, torch.device]], device: str, chosen: str
) -> None:
    limit_memory(device, 0.5)
    assert gpu == [(0.5, torch.device(chosen))]


@pytest.mark.parametrize(("fraction", "free"), [(0.5, 6), (1.0, 12), (0.1, 0)])
def test_free_memory_of_a_gpu_respects_the_limit(
    gpu: list[tuple[float, torch.device]], fraction: float, free: int
) -> None:
    limit_memory("cuda", fraction)
    assert free_bytes(torch.device("cuda")) == free * GIB


@pytest.mark.parametrize("device", ["auto", "cpu", "mps", "cuda"])
def test_limit_on_an_unsupported_device_is_refused(device: str) -> None:
    with pytest.raises(SettingsError, match="CUDA"):
        limit_memory(device, 0.5)


def test_limit_on_an_unknown_device_is_refused() -> None:
    with pytest.raises(SettingsError, match="The device gpu does not exist"):
        limit_memory("gpu", 0.5)


def test_missing_limit_calls_no_device() -> None:
    limit_memory("mps", None)


def test_doctor_reports_an_unsupported_limit() -> None:
    check = check_model("tiny", device="cpu", gpu_fraction=0.5)
    assert (check.level, "processor" in check.detail) == ("fail", True)
