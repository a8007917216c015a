"""A node that loses its coordinator, or is sent away, returns after pauses that fit the rounds."""

from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from node_client.swarm.backoff import STABLE_S
from node_client.swarm.connection import ConnectionState
from node_client.swarm.handshake import UnansweredError
from swarm_protocol.errors import RETURN_CODES, ErrorCode
from swarm_protocol.messages import (
    Hello,
    Refused,
    RoundInfo,
    RoundState,
)
from swarm_protocol.returning import HURRY_S, MAX_PAUSE_S, RETURN_WITHIN_S
from tests.node_client.coordinator import Coordinator, now, open_round, running
from tests.node_client.shell_fakes import (
    Connected,
    lose,
    no_backoff,
    running_connection,
)


async def test_unavailable_coordinator_is_tried_again() -> None:
    coordinator = Coordinator()
    async with running(coordinator), running_connection(coordinator) as node:
        coordinator.denial = (HTTPStatus.SERVICE_UNAVAILABLE, "busy")
        await coordinator.stop()
        await coordinator.start()
        await node.notebook.until(lambda: any("503" in link.reason for link in node.notebook.links))
        coordinator.denial = None
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)


@pytest.mark.parametrize("code", sorted(RETURN_CODES))
async def test_node_that_is_sent_away_returns_at_the_requested_time(code: ErrorCode) -> None:
    retries = Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries) as node,
    ):
        await coordinator.ring(Refused(None, code, "Not now.", "Wait.", retry_after=0.25))
        await coordinator.close_connections()
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
        waiting = next(link for link in node.notebook.links if link.phase == "waiting")
    assert (waiting.reason, waiting.planned) == ("Not now.", True)
    assert retries.attempts == []


@pytest.mark.parametrize(
    ("body", "header", "expected"),
    [
        (
            '{"code": "server.busy", "message": "Full.", "fix": "Wait.", "retry_after": 300.5}',
            "",
            300.5,
        ),
        ("<h1>Bad gateway</h1>", "40", 40),
        (
            '{"code": "server.busy", "message": "Full.", "fix": "Wait.", "retry_after": 9e9}',
            "",
            600,
        ),
        ("<h1>Bad gateway</h1>", "Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
    ids=["body", "header", "too long", "date"],
)
async def test_temporarily_refused_handshake_is_retried_at_the_requested_time(
    body: str, header: str, expected: float | None
) -> None:
    clock = Clock()
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator, clock=clock) as node,
    ):
        coordinator.denial = (HTTPStatus.SERVICE_UNAVAILABLE, body)
        coordinator.retry_after = header
        await coordinator.close_connections()
        await node.notebook.until(lambda: len(waits(node)) >= 2)
        link = waits(node)[1]
    assert link.planned is (expected is not None)
    if expected is not None:
        assert link.retry_at - clock.now == expected


def waits(node: Connected) -> list[ConnectionState]:
    """Return the states in which the node waited; the first follows the loss of its connection."""
    return [link for link in node.notebook.links if link.phase == "waiting"]


async def test_pauses_start_with_the_shortest_after_a_requested_wait() -> None:
    retries = Retries()
    coordinator = Coordinator()
    async with (
        running(coordinator),
        running_connection(coordinator, backoff=retries) as node,
    ):
        await lose(coordinator, node)
        await lose(coordinator, node)
        refused = Refused(None, ErrorCode.SERVER_RESTART, "Later.", "Wait.", retry_after=0.01)
        await coordinator.ring(refused)
        await lose(coordinator, node)
        await lose(coordinator, node)
    assert retries.attempts == [0, 1, 0]


async def test_temporarily_refused_hello_is_repeated_on_a_new_connection() -> None:
    coordinator = Coordinator()
    async with running(coordinator), running_connection(coordinator) as node:
        coordinator.refusals[Hello] = ErrorCode.SERVER_BUSY
        await coordinator.close_connections()
        await node.notebook.until(lambda: "not ready" in node.notebook.links[-1].reason)
        del coordinator.refusals[Hello]
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)


async def test_node_reconnects_to_a_lost_coordinator_at_the_same_address() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        with pytest.raises(UnansweredError):
            await node.client.request_round()
        await coordinator.start()
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
        await node.connection.connected.wait()
        assert await node.client.request_round() is None


class Clock:
    """A monotonic clock that only the test advances."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Retries:
    """Records the arguments of each call of the backoff."""

    attempts: list[int] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)

    def __call__(self, attempt: int, longest_s: float) -> float:
        self.attempts.append(attempt)
        self.longest.append(longest_s)
        return no_backoff(attempt, longest_s)


async def test_first_retry_after_a_stable_connection_has_the_shortest_pause() -> None:
    clock, retries = Clock(), Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries, clock=clock) as node,
    ):
        for _ in range(3):
            await lose(coordinator, node)
        clock.now += STABLE_S
        await lose(coordinator, node)
        await lose(coordinator, node)
    assert retries.attempts == [0, 1, 2, 0, 1]


async def test_announced_round_determines_the_longest_pause() -> None:
    retries = Retries()
    coordinator = Coordinator()
    coordinator.round = open_round()
    async with (
        running(coordinator),
        running_connection(coordinator, backoff=retries) as node,
    ):
        await lose(coordinator, node)
        later = RoundInfo(2, "scheduled", now(later_s=999), now(later_s=1099), 2, "")
        await coordinator.ring(RoundState(None, later, now()))
        await node.notebook.until(lambda: len(node.notebook.doorbells) == 1)
        coordinator.round = later
        await lose(coordinator, node)
    assert retries.longest == [RETURN_WITHIN_S, MAX_PAUSE_S]


async def test_hurry_is_counted_from_the_loss_of_the_latest_connection() -> None:
    clock, retries = Clock(), Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries, clock=clock) as node,
    ):
        clock.now += HURRY_S
        await lose(coordinator, node)
        coordinator.denial = (HTTPStatus.SERVICE_UNAVAILABLE, "busy")
        clock.now += 1
        await coordinator.close_connections()
        await node.notebook.until(lambda: "503" in node.notebook.links[-1].reason)
        clock.now += HURRY_S
        tries = len(retries.longest)
        await node.notebook.until(lambda: len(retries.longest) > tries + 1)
    assert set(retries.longest[:2]) == {RETURN_WITHIN_S}
    assert retries.longest[-1] == MAX_PAUSE_S


async def test_pauses_grow_if_the_server_accepts_and_drops_connections() -> None:
    retries = Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries) as node,
    ):
        for _ in range(4):
            await lose(coordinator, node)
    assert retries.attempts == [0, 1, 2, 3]


async def test_long_wait_for_the_welcome_does_not_count_as_a_stable_connection() -> None:
    clock, retries = Clock(), Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries, clock=clock) as node,
    ):
        coordinator.silent.add(Hello)
        await coordinator.close_connections()
        await coordinator.wait_for(Hello, count=2)
        clock.now += STABLE_S
        coordinator.silent.clear()
        await lose(coordinator, node)
        await lose(coordinator, node)
    assert retries.attempts == [0, 1, 2]
