"""Memory runs out in one of two processes: both continue with less, or both end. Over gloo."""

from pathlib import Path
from typing import Any

import pytest
import torch

from node_client.learning.team import ALONE
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.launching import launch_two
from tests.node_client.learning.team_member import work

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which two launched processes wrote their final states."""
    folder = tmp_path_factory.mktemp("cramped")
    launch_two("cramped_member", folder)
    return folder


def ends_of(folder: Path, *, lack: str) -> list[dict[str, Any]]:
    """Return the final states of leader and follower after the follower lacked memory."""
    return [torch.load(folder / f"{lack}-{rank}.pt") for rank in range(2)]


def test_both_halve_together_and_train_with_the_same_result(folder: Path) -> None:
    expected: Any = work(toy_policy(), ALONE)["weights"]
    leader, follower = ends_of(folder, lack="update")
    assert leader["shares"] == follower["shares"]
    assert leader["shares"][0] < 1
    for mine, theirs, alone in zip(leader["weights"], follower["weights"], expected, strict=True):
        assert torch.equal(mine, theirs)
        torch.testing.assert_close(mine, alone, rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    ("lack", "failure"),
    [("all updates", "in an update"), ("answers", "in sampling"), ("step", "in the optimizer")],
)
def test_both_end_with_the_same_error_if_one_has_no_memory_at_all(
    folder: Path, lack: str, failure: str
) -> None:
    leader, follower = ends_of(folder, lack=lack)
    assert failure in leader["failure"]
    assert follower["failure"] == leader["failure"]
