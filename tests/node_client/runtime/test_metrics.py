"""Every step of every run is in the metrics file, under the names that trl uses."""

import json
from dataclasses import fields, replace
from pathlib import Path

from node_client.learning.report import StepReport
from node_client.runtime.alone import train_offline
from node_client.runtime.metrics import TRL_NAMES, figures_of
from node_client.runtime.training import Equipment
from node_client.runtime.worker import ModelWorker
from node_client.settings.config import Settings
from node_client.storage.state import StateDir
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer, toy_policy
from tests.node_client.shell_fakes import empty_view

NOT_FIGURES = {"step", "example", "used", "texts"}


def test_every_figure_of_a_report_is_logged_under_a_flat_name(verifier: Verifier) -> None:
    report = replace(make_trainer(verifier).step(), external_dropped={"duplicate": 2})
    figures = figures_of(report)
    named = {name.split("/")[0] for name in figures} | set(figures)
    expected = {
        TRL_NAMES.get(field.name, field.name)
        for field in fields(StepReport)
        if getattr(report, field.name) not in (None, {})
    }
    assert expected - NOT_FIGURES <= named
    assert figures["external_dropped/duplicate"] == 2
    assert figures["reward"] == report.training_reward
    assert figures["step_time"] == sum(report.seconds.values())
    assert figures["frac_reward_zero_std"] == 1 - report.informative_share


async def test_resumed_run_writes_each_step_once(verifier: Verifier, tmp_path: Path) -> None:
    settings = Settings(state=StateDir(tmp_path), model="toy", arm="isolated", steps=2)
    for _ in range(2):
        async with ModelWorker() as worker:
            equipment = Equipment(
                policy=toy_policy(), verifier=verifier, worker=worker, view=empty_view()
            )
            await train_offline(settings, equipment=equipment).run()
    lines = [json.loads(line) for line in settings.state.metrics.read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4]
    assert {line["season"] for line in lines} == {"practice"}
    assert "seconds/generate" in lines[0]
