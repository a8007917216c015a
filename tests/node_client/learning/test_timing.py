"""The measured parts of a step include all of their work."""

import time

import pytest
import torch

from node_client.learning.timing import StepTimer, clock_of


def test_parts_add_up() -> None:
    moments = iter([0.0, 1.0, 5.0, 7.0])
    timer = StepTimer(lambda: next(moments))
    for _ in range(2):
        with timer.measure("score"):
            pass
    assert timer.seconds == {"score": 3.0}


def test_accelerator_is_synchronised_at_both_ends_of_a_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[torch.device] = []
    monkeypatch.setattr(torch.accelerator, "synchronize", waited.append)
    device = torch.device("cuda", 1)
    with StepTimer(clock_of(device)).measure("forward"):
        assert waited == [device]
    assert waited == [device, device]


def test_cpu_is_not_synchronised() -> None:
    assert clock_of(torch.device("cpu")) is time.perf_counter
