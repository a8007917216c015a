"""Checkpoints come at the right times, and the totals of a node's life with them."""

from pathlib import Path

import pytest

from node_client.display.view import View
from node_client.runtime.alone import LoneNode
from node_client.runtime.saving import is_save_due
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.state import Lifetime, StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy
from tests.node_client.shell_fakes import empty_view


@pytest.mark.parametrize(
    ("steps", "seconds", "due"),
    [
        (50, 60, True),
        (49, 60, False),
        (5000, 29, False),
        (1, 300, True),
        (0, 1000, False),
    ],
)
def test_checkpoints_are_neither_too_rare_nor_too_frequent(
    steps: int, seconds: float, due: bool
) -> None:
    assert is_save_due(steps=steps, seconds=seconds, save_steps=50) is due


async def run_alone(folder: Path, verifier: Verifier, *, steps: int) -> View:
    settings = Settings(state=StateDir(folder), model="toy", arm="isolated", steps=steps)
    view = empty_view()
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        await LoneNode(settings, equipment=equipment).run()
    return view


def lines_set_aside(folder: Path) -> int:
    [metrics] = folder.glob("metrics-until-*")
    return len(metrics.read_text().splitlines())


async def test_totals_of_a_nodes_life_go_on_over_restarts(
    tmp_path: Path, verifier: Verifier
) -> None:
    first = (await run_alone(tmp_path, verifier, steps=2)).lifetime
    both = (await run_alone(tmp_path, verifier, steps=1)).lifetime
    assert (first.steps, both.steps) == (2, 3)
    assert (first.rollouts_made, both.rollouts_made) == (16, 24)
    assert both.tokens > first.tokens > 0
    assert both.seconds > first.seconds > 0
    assert StateDir(tmp_path).load_lifetime() == both


async def test_totals_are_those_of_the_checkpoint_that_a_killed_run_goes_on_from(
    tmp_path: Path, verifier: Verifier
) -> None:
    await run_alone(tmp_path, verifier, steps=2)
    # A client that is killed here has written the checkpoint, but not yet its totals.
    StateDir(tmp_path).save_lifetime(Lifetime())
    assert (await run_alone(tmp_path, verifier, steps=1)).lifetime.steps == 3


async def test_a_run_that_begins_anew_adds_to_the_nodes_life_and_keeps_the_metrics_of_before(
    tmp_path: Path, verifier: Verifier
) -> None:
    await run_alone(tmp_path, verifier, steps=2)
    (tmp_path / "checkpoints").rename(tmp_path / "aside")
    assert (await run_alone(tmp_path, verifier, steps=1)).lifetime.steps == 3
    assert lines_set_aside(tmp_path) == 2
