"""Answers that are owed are handed in once, also after a restart or an outage."""

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
from tests.node_client.shell_fakes import Parrot, empty_view, running_connection


async def test_after_a_restart_in_another_folder_the_coordinator_keeps_the_first_answers() -> None:
    coordinator = Coordinator()
    coordinator.round = open_round()
    for text in ("first", "second"):
        async with (
            running(coordinator),
            running_connection(coordinator) as node,
            running_answerer(node, Parrot(text)) as answerer,
        ):
            answerer.handle_announcement(coordinator.round)
            await coordinator.heard(SubmitAnswers, count=1 if text == "first" else 2)
            await answerer.outbox.empty.wait()
    assert set(coordinator.answers.values()) == {"first"}


async def test_answers_without_ack_are_sent_again_after_a_restart_of_the_coordinator() -> None:
    coordinator, parrot = Coordinator(), Parrot()
    coordinator.silent.add(SubmitAnswers)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        [unacked] = await coordinator.heard(SubmitAnswers)
        await coordinator.stop()
        coordinator.silent.clear()
        await coordinator.start()
        [_, again] = await coordinator.heard(SubmitAnswers, count=2)
        await answerer.outbox.empty.wait()
        assert again.answers == unacked.answers
        assert len(parrot.asked) == 2


async def test_a_client_that_starts_again_hands_in_what_it_owed_and_answers_only_the_rest(
    tmp_path: Path,
) -> None:
    coordinator, parrot = Coordinator(), Parrot("new")
    coordinator.round = open_round(questions=40)
    owed = [(1, AnswerText(f"r1q{place}", "old", "stop")) for place in range(16)]
    open_spool(tmp_path).add(owed)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot, folder=tmp_path) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(
            SubmitAnswers, where=lambda said: said.answers[-1].question == "r1q39"
        )
        await answerer.outbox.empty.wait()
    assert parrot.asked == [f"{place} + 1 = ?" for place in range(16, 40)]
    assert coordinator.answers["r1q0"] == "old"
    assert len(coordinator.answers) == 40


async def test_answers_that_an_earlier_run_handed_in_count_for_the_round(tmp_path: Path) -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.round = open_round(questions=32)
    handed_in = [(1, AnswerText(f"r1q{place}", "old", "stop")) for place in range(16)]
    spool = open_spool(tmp_path)
    spool.add(handed_in)
    spool.settle(handed_in)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view, folder=tmp_path) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
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


async def test_long_answers_are_handed_in_by_as_many_frames_as_they_fill(tmp_path: Path) -> None:
    coordinator, view = Coordinator(), empty_view()
    text = "\u6570" * 10_900
    open_spool(tmp_path).add([(1, AnswerText(f"r1q{n}", text, "stop")) for n in range(32)])
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view, folder=tmp_path) as answerer,
        asyncio.timeout(20),
    ):
        await answerer.outbox.empty.wait()
        assert len(await coordinator.heard(SubmitAnswers)) == 2
    assert coordinator.answers == {f"r1q{n}": text for n in range(32)}
    assert view.answered[1] == 32


async def test_a_round_that_was_answered_before_a_restart_is_not_answered_again(
    tmp_path: Path,
) -> None:
    coordinator, parrot = Coordinator(), Parrot()
    coordinator.round = open_round()
    for run in (1, 2):
        async with (
            running(coordinator),
            running_connection(coordinator) as node,
            running_answerer(node, parrot, folder=tmp_path, poll_s=0.02) as answerer,
        ):
            answerer.handle_announcement(coordinator.round)
            await coordinator.heard(RequestQuestions, count=run)
            await coordinator.heard(SubmitAnswers)
            await answerer.outbox.empty.wait()
            polled = sum(isinstance(said, RequestRound) for said in coordinator.said)
            await coordinator.heard(RequestRound, count=polled + 2)
    assert len(parrot.asked) == 2
    assert len(await coordinator.heard(SubmitAnswers)) == 1


async def test_answers_that_are_refused_for_good_are_owed_no_more(tmp_path: Path) -> None:
    coordinator = Coordinator()
    coordinator.refusals[SubmitAnswers] = ErrorCode.ROUND_NOT_OPEN
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), folder=tmp_path) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert open_spool(tmp_path).pending == []


async def test_answers_that_come_too_late_are_given_up_with_their_reason() -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.refusals[SubmitAnswers] = ErrorCode.ROUND_NOT_OPEN
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert view.problem is not None
        assert view.problem.code == ErrorCode.ROUND_NOT_OPEN
