"""Helpers for tests of live updates: browser sockets, and changes that cause updates."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from django.utils import timezone
from websockets.asyncio.client import ClientConnection, connect

from judge.models import Round, Season
from judge.services.rounds import advance_rounds
from swarm_web.nodes.models import Node
from tests.factories import make_answer, make_round, make_seat, publish
from tests.sockets import PATIENCE_S, running_gateway


@asynccontextmanager
async def browser_socket(query: str = "", *, origin: str | None = None) -> AsyncIterator[Any]:
    async with running_gateway() as url:
        here = url.replace("ws://", "http://")
        address = f"{url}/ws/live/{query}"
        async with connect(address, additional_headers={"Origin": origin or here}) as socket:
            yield socket


async def receive(socket: ClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        frame = await socket.recv()
    text = gzip.decompress(frame) if isinstance(frame, bytes) else frame
    message: dict[str, Any] = json.loads(text)
    return message


async def receive_delta(socket: ClientConnection, key: str) -> dict[str, Any]:
    """Return the next delta with `key`; the first one after a connect has no changes."""
    while not (message := await receive(socket)).get(key):
        pass
    return message


async def receive_other_state(socket: ClientConnection, state: str) -> dict[str, Any]:
    """Return the next message whose state differs from `state`."""
    while (message := await receive(socket))["state"] == state:
        pass
    return message


def open_round_for(season: Season, node: Node) -> None:
    """Open a round in which all answers of the node are wrong."""
    judge_round = make_round(season, phase=Round.Phase.OPEN, questions=4)
    make_seat(judge_round, node)
    for question in judge_round.questions.all():
        make_answer(question, node, solved=False)
    judge_round.seats.update(completed_at=timezone.now())


def close_round() -> None:
    (judge_round,) = advance_rounds(now=timezone.now())
    assert judge_round.phase == Round.Phase.CLOSED
    publish(judge_round.season)
