"""Two processes of a node together get the results of one. Real processes over gloo."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from node_client.learning.team import ALONE, on_cpu
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.launching import launch_two
from tests.node_client.learning.team_member import work

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def launched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which two launched processes wrote their results."""
    folder = tmp_path_factory.mktemp("team")
    launch_two("team_member", folder)
    return folder


@pytest.fixture(scope="module")
def together(launched: Path) -> dict[str, Any]:
    result: dict[str, Any] = torch.load(launched / "leader.pt")
    return result


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return work(toy_policy(seed=0), ALONE)


def test_team_answers_like_one_process(alone: dict[str, Any], together: dict[str, Any]) -> None:
    assert together["answers"] == alone["answers"]


def test_team_makes_the_same_steps_as_one_process(
    alone: dict[str, Any], together: dict[str, Any]
) -> None:
    for mine, theirs in zip(alone["weights"], together["weights"], strict=True):
        torch.testing.assert_close(theirs, mine, rtol=0, atol=1e-5)


def test_team_reports_the_loss_and_norm_of_all_rows(
    alone: dict[str, Any], together: dict[str, Any]
) -> None:
    for mine, theirs in zip(alone["reports"], together["reports"], strict=True):
        assert theirs == pytest.approx(mine, rel=1e-4)


def test_all_processes_end_with_the_same_weights(launched: Path, together: dict[str, Any]) -> None:
    follower = torch.load(launched / "follower-1.pt")
    for mine, theirs in zip(together["weights"], follower, strict=True):
        assert torch.equal(mine, theirs)


class OnGpu(Tensor):
    """A tensor that represents one on a GPU: its copy on the CPU is a plain tensor."""

    def cpu(self, *_: Any, **__: Any) -> Tensor:
        return self.as_subclass(Tensor)


def test_state_is_passed_on_without_gpu_tensors() -> None:
    moment = torch.ones(2).as_subclass(OnGpu)
    state = on_cpu({"state": {0: {"exp_avg": moment, "step": 3}}, "param_groups": [{"lr": moment}]})
    assert type(state["state"][0]["exp_avg"]) is type(state["param_groups"][0]["lr"]) is Tensor
    assert state["state"][0]["step"] == 3
