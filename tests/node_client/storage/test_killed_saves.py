"""Whenever a save is killed, the checkpoint before it or the whole new one is there."""

import json
from typing import Any

import pytest

from tests.node_client.forked import run_forked
from tests.node_client.storage.saving import SCENARIOS

pytestmark = pytest.mark.slow

MODULE = "tests.node_client.storage.saving"


Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """Return what one process told of each scenario."""
    ran = run_forked(MODULE, str(tmp_path_factory.mktemp("checkpoints")))
    assert ran.returncode == 0, ran.stderr
    scenarios: dict[str, Lines] = {}
    for line in map(json.loads, ran.stdout.splitlines()):
        if "scenario" in line:
            scenarios[line["scenario"]] = lines = []
        else:
            lines.append(line)
    return scenarios


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_save_that_is_killed_before_any_operation_costs_no_checkpoint(
    told: dict[str, Lines], scenario: str
) -> None:
    lines = told[scenario]
    deaths = {line["before"] for line in lines if "before" in line}
    left = [line for line in lines if "step" in line]
    step, limit = SCENARIOS[scenario]

    assert {"open", "os.mkdir", "os.rename", "os.fsync"} <= deaths
    assert len(left) > 20
    assert all(state["is_sound"] for state in left)
    # Until the rename the one before counts, from then on the new one.
    steps = [state["step"] for state in left]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (2, step)
    # The next save leaves nothing of the killed one but checkpoints, and no more than it should.
    for state in left:
        assert all(name.startswith("step-") and len(name) == 13 for name in state["later"])
        assert len(state["later"]) == limit
