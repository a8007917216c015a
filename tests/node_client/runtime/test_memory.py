"""A node that trains for weeks holds no more than one that began a moment ago."""

import gc
from pathlib import Path

import pytest

from node_client.display.view import View
from node_client.learning.report import StepReport, Totals
from node_client.runtime.alone import LoneNode
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import toy_policy

WARM = 10
STEPS = 60


class CountingView(View):
    """Counts the objects that live after an early step and after the last one."""

    counts: list[int]

    def note_step(self, report: StepReport, totals: Totals) -> None:
        super().note_step(report, totals)
        if self.steps_here not in (WARM, STEPS):
            return
        gc.collect()
        self.counts.append(len(gc.get_objects()))


@pytest.mark.slow
async def test_no_step_leaves_an_object_behind(verifier: Verifier, tmp_path: Path) -> None:
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated", steps=STEPS)
    view = CountingView(model="toy", parameters=1000, device="cpu", arm="isolated")
    view.counts = []
    async with ModelWorker() as worker:
        equipment = Equipment(policy=toy_policy(), verifier=verifier, worker=worker, view=view)
        await LoneNode(settings, equipment=equipment).run()
    early, last = view.counts
    # Fewer than one object for every two steps: a step keeps nothing that it makes. Other tests of
    # this process may add a few.
    assert last - early < (STEPS - WARM) // 2
