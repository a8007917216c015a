import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from node_client.display.view import NodeView
from node_client.runtime.answering import RoundAnswerer
from node_client.runtime.worker import ModelWorker
from swarm_protocol.errors import ErrorCode
from swarm_protocol.messages import (
    MAX_COMPLETION_CHARS,
    NodeMessage,
    RequestQuestions,
    RequestRound,
    RequestStanding,
    RoundInfo,
    SubmitAnswers,
)
from tests.node_client.coordinator import Coordinator, now, open_round, running
from tests.node_client.fakes import toy_season
from tests.node_client.runtime.answerers import open_spool, running_answerer
from tests.node_client.shell_fakes import Answer, EchoModel, empty_view, running_connection


def view_in_season() -> NodeView:
    view = empty_view()
    view.season = toy_season()
    return view


def round_causing(kind: type[NodeMessage]) -> RoundInfo:
    """Return a round in which a node sends a request of this kind."""
    return open_round() if kind is RequestQuestions else RoundInfo(1, "closed", now(), now(), 2)


async def test_announced_round_is_answered_completely() -> None:
    coordinator, view = Coordinator(), empty_view()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view) as answerer,
    ):
        coordinator.round = open_round(questions=40)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(
            SubmitAnswers, where=lambda message: message.answers[-1].question == "r1q39"
        )
        await answerer.outbox.empty.wait()
        assert coordinator.answers == {f"r1q{n}": f"{n} + 1 = ?" for n in range(40)}
        assert view.answered[1] == 40


async def test_questions_are_answered_with_the_system_prompt_of_the_offer() -> None:
    coordinator, echo = Coordinator(), EchoModel()
    coordinator.round, coordinator.system_prompt = open_round(), "Speak in <answer>tags</answer>."
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        assert echo.system_prompts == ["Speak in <answer>tags</answer>."]


async def test_round_with_a_lost_announcement_is_found_by_polling() -> None:
    coordinator = Coordinator()
    coordinator.round = open_round()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), poll_s=0.02),
    ):
        await coordinator.wait_for(SubmitAnswers)


async def test_round_is_answered_once_despite_repeated_announcements() -> None:
    coordinator, echo = Coordinator(), EchoModel()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo, poll_s=0.02) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(RequestRound, count=3)
        assert len(await coordinator.wait_for(RequestQuestions)) == 1
        assert len(echo.questions) == 2


async def test_round_that_uses_the_number_of_a_lost_one_is_answered() -> None:
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel()) as answerer,
    ):
        for count, commitment in enumerate(("lost", "new"), start=1):
            coordinator.round = open_round(commitment=commitment)
            answerer.handle_announcement(coordinator.round)
            await coordinator.wait_for(RequestQuestions, count=count)
            await answerer.finish()


@pytest.mark.parametrize("kind", [RequestQuestions, RequestStanding])
async def test_temporarily_refused_request_is_repeated(kind: type[NodeMessage]) -> None:
    coordinator = Coordinator()
    coordinator.refusals[kind] = ErrorCode.RATE_LIMITED
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view_in_season()) as answerer,
    ):
        coordinator.round = round_causing(kind)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(kind, count=3)
        assert len(await coordinator.wait_for(RequestRound)) >= 1


@pytest.mark.parametrize("kind", [RequestQuestions, RequestStanding])
async def test_permanently_refused_request_waits_for_the_next_poll(
    kind: type[NodeMessage],
) -> None:
    coordinator, view = Coordinator(), view_in_season()
    coordinator.refusals[kind] = ErrorCode.RATE_LIMITED
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view) as answerer,
    ):
        coordinator.round = round_causing(kind)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(kind, count=2)
        coordinator.refusals[kind] = ErrorCode.SEASON_NONE
        while view.problem is None or view.problem.code != ErrorCode.SEASON_NONE:
            await node.client.request_round()
        asked = len(await coordinator.wait_for(kind))
        for _ in range(10):
            await node.client.request_round()
        assert len(await coordinator.wait_for(kind)) == asked


async def test_no_standing_is_requested_between_seasons() -> None:
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), poll_s=0.01),
    ):
        await coordinator.wait_for(RequestRound, count=3)
        assert not any(isinstance(message, RequestStanding) for message in coordinator.received)


async def test_round_opened_before_the_node_joined_is_not_requested_again() -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.refusals[RequestQuestions] = ErrorCode.ROUND_PENDING
    coordinator.round = open_round(7)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view, poll_s=0.02) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(RequestRound, count=3)
        assert len(await coordinator.wait_for(RequestQuestions)) == 1
        assert (view.skipped_round, view.problem) == (7, None)
        coordinator.refusals.clear()
        coordinator.round = open_round(8)
        await coordinator.wait_for(SubmitAnswers)


async def test_every_announced_or_polled_round_is_recorded(tmp_path: Path) -> None:
    coordinator, noted = Coordinator(), list[RoundInfo | None]()
    rung, polled = (
        RoundInfo(number, "scheduled", now(), now(later_s=60), 2, commitment)
        for number, commitment in enumerate(("rung", "polled"))
    )
    coordinator.round = polled
    async with running(coordinator), running_connection(coordinator) as node:
        answerer = RoundAnswerer(
            client=node.client,
            worker=ModelWorker(),
            generator=EchoModel(),
            view=empty_view(),
            spool=open_spool(tmp_path),
            record_commitment=noted.append,
            poll_s=0.02,
        )
        answerer.handle_announcement(rung)
        asking = asyncio.create_task(answerer.run())
        await coordinator.wait_for(RequestRound, count=2)
        asking.cancel()
    assert noted[:2] == [rung, polled]


async def test_no_answers_are_generated_for_a_round_that_has_ended(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator, echo = Coordinator(), EchoModel()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo, poll_s=0.02) as answerer,
    ):
        coordinator.round = open_round(closes_in_s=-1)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(RequestRound)
        assert echo.questions == []
    assert "ended before" in caplog.text


async def test_deadline_extended_by_an_outage_is_used() -> None:
    coordinator, echo = Coordinator(), EchoModel()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, echo) as answerer,
    ):
        coordinator.round = open_round(closes_in_s=-1)
        answerer.handle_announcement(
            replace(coordinator.round, closes_at=open_round(closes_in_s=60).closes_at)
        )
        await coordinator.wait_for(SubmitAnswers)
        assert echo.questions


class SlowModel(EchoModel):
    """Starts to answer and continues when the test allows it."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.may_continue = threading.Event()

    def generate(
        self,
        questions: Sequence[str],
        *,
        completions: int,
        max_new_tokens: int,
        temperature: float,
        system_prompt: str,
    ) -> list[list[Answer]]:
        self.began.set()
        self.may_continue.wait()
        return super().generate(
            questions,
            completions=completions,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            system_prompt=system_prompt,
        )


async def test_no_training_step_runs_between_the_questions_of_a_round() -> None:
    coordinator, echo = Coordinator(), SlowModel()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        ModelWorker() as worker,
        running_answerer(node, echo, worker=worker) as answerer,
    ):
        coordinator.round = open_round(questions=40)
        answerer.handle_announcement(coordinator.round)
        await asyncio.to_thread(echo.began.wait)
        has_turn = worker.turn.locked()
        echo.may_continue.set()
        assert has_turn
        async with worker.turn:
            assert len(echo.questions) == 40


async def test_answering_waits_only_for_the_step_in_progress() -> None:
    coordinator, order = Coordinator(), list[str]()
    step_may_end = threading.Event()

    async def train(worker: ModelWorker) -> None:
        for step in range(3):
            async with worker.turn:
                await worker.run(lambda: step_may_end.wait() and None)
                order.append(f"step {step}")

    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        ModelWorker() as worker,
        running_answerer(
            node, EchoModel(before_batch=lambda: order.append("round")), worker=worker
        ) as answerer,
    ):
        training = asyncio.create_task(train(worker))
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(RequestQuestions)
        # The offer arrives on the same connection before the reply to the next request.
        await node.client.request_round()
        step_may_end.set()
        await training
    assert order == ["step 0", "round", "step 1", "step 2"]


async def test_characters_invalid_in_messages_do_not_invalidate_the_answer() -> None:
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel("a\x00b\ud800" + "c" * MAX_COMPLETION_CHARS)) as answerer,
    ):
        coordinator.round = open_round(questions=1)
        answerer.handle_announcement(coordinator.round)
        await coordinator.wait_for(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert coordinator.answers["r1q0"].startswith("ab?ccc")


async def test_score_is_requested_when_a_round_closes() -> None:
    coordinator, view = Coordinator(), view_in_season()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, EchoModel(), view=view, poll_s=0.02) as answerer,
    ):
        answerer.handle_announcement(RoundInfo(1, "closed", now(), now(), 2))
        await coordinator.wait_for(RequestStanding)
        await coordinator.wait_for(RequestRound)
        assert view.standing is not None
        assert view.standing.score == 0.5
