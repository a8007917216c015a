"""When held-out questions are evaluated, and what may run in between."""

import asyncio

import pytest

from node_client.learning.questions.held_out import QUESTIONS_AT_ONCE, Evaluation, HeldOutScore
from node_client.learning.report import StepReport
from node_client.learning.trainer import Trainer
from node_client.runtime.alone import practice_season
from node_client.runtime.evaluating import Evaluator
from node_client.runtime.metrics import figures_of
from node_client.runtime.worker import ModelWorker
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer


async def make_steps(trainer: Trainer, count: int) -> list[StepReport]:
    """Return the reports of `count` steps, made as in a running client."""
    async with ModelWorker() as worker:
        evaluator = Evaluator(trainer, worker=worker, is_stopping=lambda: False)
        reports = []
        for _ in range(count):
            await evaluator.prepare()
            reports.append(await evaluator.complete(await worker.run(trainer.step)))
        return reports


async def test_score_is_measured_before_the_first_step_and_then_at_intervals(
    verifier: Verifier,
) -> None:
    config = TrainConfig(eval_tasks=4, eval_every=2)
    reports = await make_steps(make_trainer(verifier, config=config), 4)
    assert [report.held_out_before is not None for report in reports] == [True] + [False] * 3
    assert [report.held_out is not None for report in reports] == [False, True] * 2
    assert ["evaluate" in report.seconds for report in reports] == [True, True, False, True]


async def test_step_with_a_failed_evaluation_is_reported_without_a_score(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = Evaluation.ask

    def fail_later(self: Evaluation) -> HeldOutScore | None:
        if trainer.steps_done:
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "It is gone.")
        return ask(self)

    monkeypatch.setattr(Evaluation, "ask", fail_later)
    trainer = make_trainer(verifier, config=TrainConfig(eval_tasks=4, eval_every=2))
    _, report, after = await make_steps(trainer, 3)
    assert (report.step, report.held_out) == (2, None)
    assert report.notice is not None
    assert "It is gone." in report.notice
    assert after.step == 3


async def test_nothing_is_evaluated_unless_requested(verifier: Verifier) -> None:
    [report] = await make_steps(make_trainer(verifier, config=TrainConfig(eval_every=1)), 1)
    assert report.held_out is None
    assert report.held_out_before is None
    assert "evaluate" not in report.seconds


async def test_score_is_logged_with_its_interval(verifier: Verifier) -> None:
    config = TrainConfig(eval_tasks=4, eval_every=1)
    [report] = await make_steps(make_trainer(verifier, config=config), 1)
    figures = figures_of(report)
    for name in ("held_out", "held_out_before"):
        assert figures[f"{name}/n"] == 4
        assert 0 <= float(figures[f"{name}/low"]) <= float(figures[f"{name}/score"])


async def test_answering_runs_between_two_batches_of_an_evaluation(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = count_batches(monkeypatch)
    config = TrainConfig(eval_tasks=3 * QUESTIONS_AT_ONCE)
    trainer = make_trainer(verifier, season=practice_season(), config=config)
    async with ModelWorker() as worker:
        evaluator = Evaluator(trainer, worker=worker, is_stopping=lambda: False)
        async with worker.turn:
            evaluating = asyncio.create_task(evaluator.prepare())
            await asyncio.sleep(0)  # until it waits for its turn, ahead of the round
            answerer = asyncio.create_task(take_turn(worker, batches))
            await asyncio.sleep(0)
        assert await answerer == 1
        await evaluating
    assert len(batches) == 3


async def test_stopped_node_evaluates_no_further_batch(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = count_batches(monkeypatch)
    config = TrainConfig(eval_tasks=3 * QUESTIONS_AT_ONCE, eval_every=1)
    trainer = make_trainer(verifier, season=practice_season(), config=config)
    async with ModelWorker() as worker:
        evaluator = Evaluator(trainer, worker=worker, is_stopping=lambda: bool(batches))
        report = await evaluator.complete(await worker.run(trainer.step))
    assert len(batches) == 1
    assert (report.step, report.held_out) == (1, None)


async def take_turn(worker: ModelWorker, batches: list[Evaluation]) -> int:
    """Return how many batches had been evaluated when the judge round got its turn."""
    async with worker.turn:
        return len(batches)


def count_batches(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation]:
    """Return a list that receives an entry for each batch."""
    batches: list[Evaluation] = []
    ask = Evaluation.ask

    def count(self: Evaluation) -> HeldOutScore | None:
        batches.append(self)
        return ask(self)

    monkeypatch.setattr(Evaluation, "ask", count)
    return batches
