"""A client killed before its answers are acknowledged submits the same answers again."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from swarm_protocol.messages import RequestQuestions, RequestRound, SubmitAnswers
from tests.node_client.coordinator import Coordinator, open_round, running

pytestmark = pytest.mark.slow

MODULE = "tests.node_client.runtime.answering_process"


@asynccontextmanager
async def running_client(
    coordinator: Coordinator, folder: Path, text: str
) -> AsyncIterator[Process]:
    """Run a client that is killed without warning when the block ends."""
    site = coordinator.site.base
    arguments = ("-m", MODULE, site, str(folder), text)
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)
    try:
        yield process
    finally:
        process.kill()
        await process.wait()


async def output_of(process: Process) -> str:
    assert process.stdout is not None
    return (await process.stdout.read()).decode()


async def test_answers_of_a_killed_client_are_submitted_and_not_generated_again(
    tmp_path: Path,
) -> None:
    coordinator = Coordinator()
    coordinator.round = open_round(questions=12)
    coordinator.silent.add(SubmitAnswers)
    async with running(coordinator):
        async with running_client(coordinator, tmp_path, "first") as first:
            [unconfirmed] = await coordinator.wait_for(SubmitAnswers)
        assert (await output_of(first)).count("generating") == 1
        coordinator.silent.clear()
        coordinator.received.clear()
        async with running_client(coordinator, tmp_path, "second") as second:
            [again] = await coordinator.wait_for(SubmitAnswers)
            await coordinator.wait_for(RequestQuestions)
            asked = sum(isinstance(message, RequestRound) for message in coordinator.received)
            await coordinator.wait_for(RequestRound, count=asked + 2)
        assert await output_of(second) == ""
    assert again.answers == unconfirmed.answers
    assert list(coordinator.answers.values()) == ["first"] * 12
