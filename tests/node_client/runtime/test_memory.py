"""A node that trains for weeks uses no more memory than one that has just started."""

import gc
from itertools import pairwise
from pathlib import Path

import pytest

from node_client.display.view import NodeView
from node_client.learning.report import StepReport, TrainingTotals
from node_client.runtime.alone import train_offline
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy

STRETCH = 10
STEPS = 60


class CountingView(NodeView):
    """Counts the live objects after every tenth step."""

    counts: list[int]

    def show_step(self, report: StepReport, totals: TrainingTotals) -> None:
        super().show_step(report, totals)
        if self.steps_this_run % STRETCH:
            return
        gc.collect()
        self.counts.append(len(gc.get_objects()))


@pytest.mark.slow
async def test_steps_leave_no_objects_behind(verifier: Verifier, tmp_path: Path) -> None:
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated", steps=STEPS)
    view = CountingView(model="toy", parameters=1000, device="cpu", arm="isolated")
    view.counts = []
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        await train_offline(settings, equipment=equipment).run()
    # Other tests of this process may leave objects in between, but not in every stretch.
    fewest = min(after - before for before, after in pairwise(view.counts))
    assert len(view.counts) == STEPS // STRETCH
    assert fewest < STRETCH // 2, "a step leaks objects"
