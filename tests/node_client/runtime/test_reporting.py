"""Names of used rollouts are pending until a report with them is acknowledged."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from node_client.learning.report import StepReport, TrainingTotals
from node_client.runtime.reporting import Reporter
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import MAX_USED, ReportTraining, RolloutName
from tests.node_client.coordinator import Coordinator, running
from tests.node_client.panel_views import report
from tests.node_client.shell_fakes import running_connection


def step_report(step: int, *ids: str) -> StepReport:
    return replace(report(), step=step, used=[RolloutName("bold", name) for name in ids])


@asynccontextmanager
async def running_reporter(
    coordinator: Coordinator, refusals: list[RefusedError]
) -> AsyncIterator[Reporter]:
    async with running_connection(coordinator) as node:
        reporter = Reporter(client=node.client, on_refused=refusals.append, interval_s=0)
        task = asyncio.create_task(reporter.outbox.run())
        try:
            yield reporter
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def ids_of(sent: ReportTraining) -> list[str]:
    return [name.id for name in sent.used]


async def test_names_of_a_superseded_report_are_in_the_next() -> None:
    async with running(Coordinator()) as coordinator, running_reporter(coordinator, []) as reporter:
        reporter.put(step_report(1, "a"), TrainingTotals())
        reporter.put(step_report(2, "b"), TrainingTotals())
        [sent] = await coordinator.wait_for(ReportTraining)
    assert (sent.step, ids_of(sent)) == (2, ["a", "b"])


async def test_acknowledged_names_are_not_reported_again() -> None:
    async with running(Coordinator()) as coordinator, running_reporter(coordinator, []) as reporter:
        reporter.put(step_report(1, "a"), TrainingTotals())
        await coordinator.wait_for(ReportTraining)
        await reporter.outbox.empty.wait()
        reporter.put(step_report(2, "b"), TrainingTotals())
        sent = await coordinator.wait_for(ReportTraining, count=2)
    assert [ids_of(each) for each in sent] == [["a"], ["b"]]


async def test_names_of_a_refused_report_are_in_the_next() -> None:
    refusals: list[RefusedError] = []
    coordinator = Coordinator()
    coordinator.refusals[ReportTraining] = ErrorCode.SEASON_NONE
    async with running(coordinator), running_reporter(coordinator, refusals) as reporter:
        reporter.put(step_report(1, "a"), TrainingTotals())
        await reporter.outbox.empty.wait()
        assert [refusal.code for refusal in refusals] == [ErrorCode.SEASON_NONE]
        del coordinator.refusals[ReportTraining]
        reporter.put(step_report(2), TrainingTotals())
        sent = await coordinator.wait_for(ReportTraining, count=2)
    assert ids_of(sent[-1]) == ["a"]


async def test_pending_names_are_limited_to_the_size_of_a_report() -> None:
    async with running(Coordinator()) as coordinator, running_reporter(coordinator, []) as reporter:
        reporter.put(step_report(1, *(f"r{n}" for n in range(MAX_USED + 2))), TrainingTotals())
        [sent] = await coordinator.wait_for(ReportTraining)
    assert ids_of(sent) == [f"r{n}" for n in range(2, MAX_USED + 2)]
