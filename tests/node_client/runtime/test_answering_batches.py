"""Pending answers are submitted once, even after a restart or an outage."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from node_client.display.health import assess_health
from node_client.site import Site
from node_client.swarm.connection import ConnectionState
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import (
    AnswerText,
    RequestQuestions,
    RequestRound,
    SubmitAnswers,
)
from tests.node_client.coordinator import Coordinator, open_round, running
from tests.node_client.fakes import toy_season
from tests.node_client.runtime.answerers import open_spool, running_answerer
from tests.node_client.shell_fakes import EchoModel, empty_view, running_connection


async def test_coordinator_keeps_the_first_answers_after_a_restart_in_another_folder() -> None:
    coordinator = Coordinator()
    coordinator.round = open_round()
    for text in ("first", "second"):
        async with (
            running(coordinator),
            running_connection(coordinator) as node,
            running_answerer(node, EchoModel(text)) as answerer,
        ):
            answerer.handle_announcement(coordinator.round)
            await coordinator.wait_for(SubmitAnswers, count=1 if text == "first" else 2)
            await answerer.outbox.empty.wait()
    assert set(coordinator.answers.values()) == {"first"}


async def test_unacknowledged_answers_are_sent_again_after_a_coordinator_restart() -> None:
    coordinator, echo = Coordinator(), EchoModel()
    coordinator.silent.add(SubmitAnswers)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        [unacked] = await coordinator.wait_for(SubmitAnswers)
        await coordinator.stop()
        coordinator.silent.clear()
        await coordinator.start()
        [_, again] = await coordinator.wait_for(SubmitAnswers, count=2)
        await answerer.outbox.empty.wait()
        assert again.answers == unacked.answers
        assert len(echo.questions) == 2


async def test_restarted_client_submits_stored_answers_and_answers_only_the_rest(
    tmp_path: Path,
) -> None:
    coordinator, echo = Coordinator(), EchoModel("new")
    coordinator.round = open_round(questions=40)
    stored = [(1, AnswerText(f"r1q{place}", "old", "stop")) for place in range(16)]
    open_spool(tmp_path).add(stored)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo, folder=tmp_path) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(
            SubmitAnswers, where=lambda message: message.answers[-1].question == "r1q39"
        )
        await answerer.outbox.empty.wait()
    assert echo.questions == [f"{place} + 1 = ?" for place in range(16, 40)]
    assert coordinator.answers["r1q0"] == "old"
    assert len(coordinator.answers) == 40


async def test_answers_submitted_by_an_earlier_run_count_for_the_round(tmp_path: Path) -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.round = open_round(questions=32)
    submitted = [(1, AnswerText(f"r1q{place}", "old", "stop")) for place in range(16)]
    spool = open_spool(tmp_path)
    spool.add(submitted)
    spool.settle(submitted)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view, folder=tmp_path) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        await answerer.outbox.empty.wait()
    view.site, view.connection, view.season = (
        Site("http://here"),
        ConnectionState("connected"),
        toy_season(),
    )
    view.show_round(None)
    health = assess_health(view, now=datetime.now(UTC), clock=0.0)
    assert view.answered[1] == 32
    assert health.state != "needs attention"


async def test_long_answers_are_submitted_in_as_many_frames_as_needed(tmp_path: Path) -> None:
    coordinator, view = Coordinator(), empty_view()
    text = "\u6570" * 10_900
    open_spool(tmp_path).add([(1, AnswerText(f"r1q{n}", text, "stop")) for n in range(32)])
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view, folder=tmp_path) as answerer,
        asyncio.timeout(20),
    ):
        await answerer.outbox.empty.wait()
        assert len(await coordinator.wait_for(SubmitAnswers)) == 2
    assert coordinator.answers == {f"r1q{n}": text for n in range(32)}
    assert view.answered[1] == 32


async def test_round_answered_before_a_restart_is_not_answered_again(
    tmp_path: Path,
) -> None:
    coordinator, echo = Coordinator(), EchoModel()
    coordinator.round = open_round()
    for run in (1, 2):
        async with (
            running(coordinator),
            running_connection(coordinator) as node,
            running_answerer(node, echo, folder=tmp_path, poll_s=0.02) as answerer,
        ):
            answerer.handle_announcement(coordinator.round)
            await coordinator.wait_for(RequestQuestions, count=run)
            await coordinator.wait_for(SubmitAnswers)
            await answerer.outbox.empty.wait()
            polled = sum(isinstance(message, RequestRound) for message in coordinator.received)
            await coordinator.wait_for(RequestRound, count=polled + 2)
    assert len(echo.questions) == 2
    assert len(await coordinator.wait_for(SubmitAnswers)) == 1


async def test_permanently_refused_answers_are_no_longer_pending(tmp_path: Path) -> None:
    coordinator = Coordinator()
    coordinator.refusals[SubmitAnswers] = ErrorCode.ROUND_NOT_OPEN
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), folder=tmp_path) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert open_spool(tmp_path).pending == []


async def test_late_answers_are_dropped_with_the_reason() -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.refusals[SubmitAnswers] = ErrorCode.ROUND_NOT_OPEN
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert view.problem is not None
        assert view.problem.code == ErrorCode.ROUND_NOT_OPEN
