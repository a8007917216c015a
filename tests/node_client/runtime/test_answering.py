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
from tests.node_client.shell_fakes import Answer, Parrot, empty_view, running_connection


def view_in_season() -> NodeView:
    view = empty_view()
    view.season = toy_season()
    return view


def round_to_ask(kind: type[NodeMessage]) -> RoundInfo:
    """Return a round in which a node sends such a request."""
    return open_round() if kind is RequestQuestions else RoundInfo(1, "closed", now(), now(), 2)


async def test_an_announced_round_is_answered_completely() -> None:
    coordinator, view = Coordinator(), empty_view()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view) as answerer,
    ):
        coordinator.round = open_round(questions=40)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(
            SubmitAnswers, where=lambda said: said.answers[-1].question == "r1q39"
        )
        await answerer.outbox.empty.wait()
        assert coordinator.answers == {f"r1q{n}": f"{n} + 1 = ?" for n in range(40)}
        assert view.answered[1] == 40


async def test_questions_are_asked_under_the_prompt_that_came_with_them() -> None:
    coordinator, parrot = Coordinator(), Parrot()
    coordinator.round, coordinator.system_prompt = open_round(), "Speak in <answer>tags</answer>."
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
        assert parrot.told == ["Speak in <answer>tags</answer>."]


async def test_a_round_whose_announcement_was_lost_is_found_by_asking() -> None:
    coordinator = Coordinator()
    coordinator.round = open_round()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), poll_s=0.02),
    ):
        await coordinator.heard(SubmitAnswers)


async def test_a_round_is_sat_once_however_often_it_is_announced() -> None:
    coordinator, parrot = Coordinator(), Parrot()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot, poll_s=0.02) as answerer,
    ):
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(RequestRound, count=3)
        assert len(await coordinator.heard(RequestQuestions)) == 1
        assert len(parrot.asked) == 2


@pytest.mark.parametrize("kind", [RequestQuestions, RequestStanding])
async def test_a_node_that_was_refused_for_the_moment_asks_again(kind: type[NodeMessage]) -> None:
    coordinator = Coordinator()
    coordinator.refusals[kind] = ErrorCode.RATE_LIMITED
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view_in_season()) as answerer,
    ):
        coordinator.round = round_to_ask(kind)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(kind, count=3)
        assert len(await coordinator.heard(RequestRound)) >= 1


@pytest.mark.parametrize("kind", [RequestQuestions, RequestStanding])
async def test_a_node_that_is_refused_for_good_waits_for_its_next_poll(
    kind: type[NodeMessage],
) -> None:
    coordinator, view = Coordinator(), view_in_season()
    coordinator.refusals[kind] = ErrorCode.RATE_LIMITED
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view) as answerer,
    ):
        coordinator.round = round_to_ask(kind)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(kind, count=2)
        coordinator.refusals[kind] = ErrorCode.SEASON_NONE
        while view.problem is None or view.problem.code != ErrorCode.SEASON_NONE:
            await node.client.request_round()
        asked = len(await coordinator.heard(kind))
        for _ in range(10):
            await node.client.request_round()
        assert len(await coordinator.heard(kind)) == asked


async def test_between_seasons_no_standing_is_asked_for() -> None:
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), poll_s=0.01),
    ):
        await coordinator.heard(RequestRound, count=3)
        assert not any(isinstance(said, RequestStanding) for said in coordinator.said)


async def test_a_round_that_opened_before_the_node_came_is_sat_out_without_asking_again() -> None:
    coordinator, view = Coordinator(), empty_view()
    coordinator.refusals[RequestQuestions] = ErrorCode.ROUND_PENDING
    coordinator.round = open_round(7)
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view, poll_s=0.02) as answerer,
    ):
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(RequestRound, count=3)
        assert len(await coordinator.heard(RequestQuestions)) == 1
        assert (view.skipped_round, view.problem) == (7, None)
        coordinator.refusals.clear()
        coordinator.round = open_round(8)
        await coordinator.heard(SubmitAnswers)


async def test_every_round_that_is_heard_of_is_told_to_who_notes_them(tmp_path: Path) -> None:
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
            generator=Parrot(),
            view=empty_view(),
            spool=open_spool(tmp_path),
            record_commitment=noted.append,
            poll_s=0.02,
        )
        answerer.handle_announcement(rung)
        asking = asyncio.create_task(answerer.run())
        await coordinator.heard(RequestRound, count=2)
        asking.cancel()
    assert noted[:2] == [rung, polled]


async def test_a_round_that_ends_while_answering_gets_no_late_answers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coordinator, parrot = Coordinator(), Parrot()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot, poll_s=0.02) as answerer,
    ):
        coordinator.round = open_round(closes_in_s=-1)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(RequestRound)
        assert parrot.asked == []
    assert "ended before" in caplog.text


async def test_a_deadline_that_an_outage_moved_is_the_one_that_counts() -> None:
    coordinator, parrot = Coordinator(), Parrot()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, parrot) as answerer,
    ):
        coordinator.round = open_round(closes_in_s=-1)
        answerer.handle_announcement(
            replace(coordinator.round, closes_at=open_round(closes_in_s=60).closes_at)
        )
        await coordinator.heard(SubmitAnswers)
        assert parrot.asked


class SlowParrot(Parrot):
    """Begins to answer and goes on when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()
        self.may_go_on = threading.Event()

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
        self.may_go_on.wait()
        return super().generate(
            questions,
            completions=completions,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            system_prompt=system_prompt,
        )


async def test_no_training_step_comes_between_the_questions_of_a_round() -> None:
    coordinator, parrot = Coordinator(), SlowParrot()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        ModelWorker() as worker,
        running_answerer(node, parrot, worker=worker) as answerer,
    ):
        coordinator.round = open_round(questions=40)
        answerer.handle_announcement(coordinator.round)
        await asyncio.to_thread(parrot.began.wait)
        has_turn = worker.turn.locked()
        parrot.may_go_on.set()
        assert has_turn
        async with worker.turn:
            assert len(parrot.asked) == 40


async def test_an_exam_waits_for_the_step_in_progress_and_for_no_other() -> None:
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
            node, Parrot(when_asked=lambda: order.append("round")), worker=worker
        ) as answerer,
    ):
        training = asyncio.create_task(train(worker))
        coordinator.round = open_round()
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(RequestQuestions)
        # The offer travels back on the same connection before the answer to the next request.
        await node.client.request_round()
        step_may_end.set()
        await training
    assert order == ["step 0", "round", "step 1", "step 2"]


async def test_text_that_the_wire_refuses_costs_only_its_own_characters() -> None:
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot("a\x00b\ud800" + "c" * MAX_COMPLETION_CHARS)) as answerer,
    ):
        coordinator.round = open_round(questions=1)
        answerer.handle_announcement(coordinator.round)
        await coordinator.heard(SubmitAnswers)
        await answerer.outbox.empty.wait()
        assert coordinator.answers["r1q0"].startswith("ab?ccc")


async def test_the_score_is_fetched_when_a_round_closes() -> None:
    coordinator, view = Coordinator(), view_in_season()
    async with (
        running(coordinator),
        running_connection(coordinator) as node,
        running_answerer(node, Parrot(), view=view, poll_s=0.02) as answerer,
    ):
        answerer.handle_announcement(RoundInfo(1, "closed", now(), now(), 2))
        await coordinator.heard(RequestStanding)
        await coordinator.heard(RequestRound)
        assert view.standing is not None
        assert view.standing.score == 0.5
