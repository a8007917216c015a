"""The limit on a GPU's memory. These tests need no GPU: torch's calls are recorded."""

import pytest
import torch

from node_client.commands.doctor import check_model
from node_client.errors import SettingsError
from node_client.model.memory_limit import limit_memory
from node_client.model.preflight import free_bytes

GIB = 1 << 30


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, torch.device]]:
    """Pretend that there is a GPU of 16 GiB, 12 of them free, 2 held by this process."""
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
def test_a_gpu_is_limited(gpu: list[tuple[float, torch.device]], device: str, chosen: str) -> None:
    limit_memory(device, 0.5)
    assert gpu == [(0.5, torch.device(chosen))]


@pytest.mark.parametrize(("fraction", "free"), [(0.5, 6), (1.0, 12), (0.1, 0)])
def test_what_is_free_is_what_the_limit_leaves(
    gpu: list[tuple[float, torch.device]], fraction: float, free: int
) -> None:
    limit_memory("cuda", fraction)
    assert free_bytes(torch.device("cuda")) == free * GIB


@pytest.mark.parametrize("device", ["auto", "cpu", "mps", "cuda"])
def test_a_device_without_a_limit_is_refused(device: str) -> None:
    with pytest.raises(SettingsError, match="CUDA"):
        limit_memory(device, 0.5)


def test_no_limit_asks_nothing_of_any_device() -> None:
    limit_memory("mps", None)


def test_doctor_tells_that_there_is_no_such_limit() -> None:
    check = check_model("tiny", device="cpu", gpu_fraction=0.5)
    assert (check.level, "processor" in check.detail) == ("fail", True)
