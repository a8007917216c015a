"""After a save is killed at any point, the previous checkpoint or the complete new one exists."""

import json
from typing import Any

import pytest

from tests.node_client.forked import run_forked
from tests.node_client.storage.saving import SCENARIOS

pytestmark = pytest.mark.slow

MODULE = "tests.node_client.storage.saving"


Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Lines]:
    """Return what one process printed for each scenario."""
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
def test_save_killed_before_any_operation_loses_no_checkpoint(
    outcomes: dict[str, Lines], scenario: str
) -> None:
    lines = outcomes[scenario]
    deaths = {line["before"] for line in lines if "before" in line}
    left = [line for line in lines if "step" in line]
    step, limit = SCENARIOS[scenario]

    assert {"open", "os.mkdir", "os.rename", "os.fsync"} <= deaths
    assert len(left) > 20
    assert all(state["is_sound"] for state in left)
    # Up to the rename the previous checkpoint counts, after it the new one.
    steps = [state["step"] for state in left]
    assert steps == sorted(steps)
    assert (steps[0], steps[-1]) == (2, step)
    # The next save leaves only checkpoints, within the limit, and nothing of the killed save.
    for state in left:
        assert all(name.startswith("step-") and len(name) == 13 for name in state["later"])
        assert len(state["later"]) == limit
