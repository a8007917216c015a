import asyncio
import logging
from dataclasses import dataclass, field
from http import HTTPStatus

import msgspec
import pytest
from websockets.frames import CloseCode

from node_client.errors import CoordinatorRefusedError
from node_client.swarm.backoff import STABLE_S
from node_client.swarm.connection import Connection, Link
from node_client.swarm.handshake import UnansweredError, check_admission
from swarm_protocol.codec import encode
from swarm_protocol.errors import RETURN_CODES, ErrorCode, RefusedError
from swarm_protocol.messages import (
    Hardware,
    Hello,
    Refused,
    RequestRound,
    RoundInfo,
    RoundState,
    SeasonState,
    Standing,
)
from swarm_protocol.returning import HURRY_S, LONGEST_PAUSE_S, RETURN_WITHIN_S
from tests.node_client.coordinator import TOKEN, Coordinator, now, open_round, running, with_field
from tests.node_client.shell_fakes import HELLO, Connected, Notebook, at_once, running_connection


async def run_until_refused(coordinator: Coordinator, *, token: str = TOKEN) -> Exception:
    connection = Connection(
        url=coordinator.site.socket,
        token=token,
        hello=HELLO,
        listener=Notebook(),
        backoff=at_once,
    )
    with pytest.raises(CoordinatorRefusedError) as refusal:
        async with asyncio.timeout(20):
            await connection.run()
    return refusal.value


async def test_the_token_goes_into_the_handshake_and_compression_is_off() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator):
        headers = coordinator.headers[0]
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert "Sec-WebSocket-Extensions" not in headers


async def test_a_wrong_token_ends_the_client_with_the_servers_words() -> None:
    async with running(Coordinator()) as coordinator:
        refusal = await run_until_refused(coordinator, token="wrong")
    assert isinstance(refusal, CoordinatorRefusedError)
    assert (refusal.code, refusal.message) == ("auth.invalid", "This token is unknown.")
    assert "new one" in refusal.fix


@pytest.mark.parametrize("body", ["", "<h1>Forbidden</h1>", "[]"])
async def test_a_denial_without_words_of_the_server_is_explained_anyway(body: str) -> None:
    coordinator = Coordinator()
    coordinator.denial = (HTTPStatus.UNAUTHORIZED, body)
    async with running(coordinator):
        refusal = await run_until_refused(coordinator)
    assert isinstance(refusal, CoordinatorRefusedError)
    assert "token" in refusal.message


@pytest.mark.parametrize("code", [ErrorCode.PROTOCOL_VERSION, ErrorCode.CLIENT_TOO_OLD])
async def test_a_fatal_answer_to_the_hello_ends_the_client(code: ErrorCode) -> None:
    coordinator = Coordinator()
    coordinator.refusals[Hello] = code
    async with running(coordinator):
        refusal = await run_until_refused(coordinator)
    assert isinstance(refusal, CoordinatorRefusedError)
    assert refusal.code == code


async def test_a_fatal_error_later_on_ends_the_client() -> None:
    async with running(Coordinator()) as coordinator:
        ended = asyncio.create_task(run_until_refused(coordinator))
        await coordinator.heard(Hello)
        code = ErrorCode.AUTH_SUPERSEDED
        # The hello was heard before it is answered, so ring until the node listens.
        while not ended.done():
            await coordinator.ring(Refused(None, code, "Replaced.", "Stop one.", fatal=True))
            await asyncio.wait([ended], timeout=0.01)
        refusal = ended.result()
    assert isinstance(refusal, CoordinatorRefusedError)
    assert (refusal.code, refusal.fix) == (code, "Stop one.")


async def test_a_coordinator_in_trouble_is_tried_again() -> None:
    coordinator = Coordinator()
    async with running(coordinator), running_connection(coordinator) as node:
        coordinator.denial = (HTTPStatus.SERVICE_UNAVAILABLE, "busy")
        await coordinator.stop()
        await coordinator.start()
        await node.notebook.until(lambda: any("503" in link.reason for link in node.notebook.links))
        coordinator.denial = None
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)


@pytest.mark.parametrize("code", sorted(RETURN_CODES))
async def test_a_node_that_is_sent_away_comes_back_when_it_was_told(code: ErrorCode) -> None:
    retries = Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries) as node,
    ):
        await coordinator.ring(Refused(None, code, "Not now.", "Wait.", retry_after=0.25))
        await coordinator.hang_up()
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
async def test_a_handshake_that_is_refused_for_now_is_tried_again_when_it_was_told(
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
        await coordinator.hang_up()
        await node.notebook.until(lambda: len(waits(node)) >= 2)
        link = waits(node)[1]
    assert link.planned is (expected is not None)
    if expected is not None:
        assert link.retry_at - clock.now == expected


def waits(node: Connected) -> list[Link]:
    """Return how long the node waited, and why: first for the connection that it lost."""
    return [link for link in node.notebook.links if link.phase == "waiting"]


async def test_after_a_wait_that_was_asked_for_the_pauses_begin_with_the_shortest() -> None:
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


async def test_a_hello_that_is_refused_for_now_is_said_again_on_a_new_connection() -> None:
    coordinator = Coordinator()
    async with running(coordinator), running_connection(coordinator) as node:
        coordinator.refusals[Hello] = ErrorCode.SERVER_BUSY
        await coordinator.hang_up()
        await node.notebook.until(lambda: "not ready" in node.notebook.links[-1].reason)
        del coordinator.refusals[Hello]
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)


async def test_a_lost_coordinator_is_found_again_on_the_same_address() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.stop()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        with pytest.raises(UnansweredError):
            await node.client.round()
        await coordinator.start()
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
        await node.connection.connected.wait()
        assert await node.client.round() is None


class Clock:
    """A monotonic time that only a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Retries:
    """Keeps what each pause before a new connection was computed for."""

    attempts: list[int] = field(default_factory=list)
    longest: list[float] = field(default_factory=list)

    def __call__(self, attempt: int, longest_s: float) -> float:
        self.attempts.append(attempt)
        self.longest.append(longest_s)
        return at_once(attempt, longest_s)


async def lose(coordinator: Coordinator, node: Connected) -> None:
    """Cut the connection and wait for the next welcome."""
    welcomes = len(node.notebook.welcomes)
    await coordinator.hang_up()
    await node.notebook.until(lambda: len(node.notebook.welcomes) > welcomes)
    await node.connection.connected.wait()


async def test_the_first_retry_after_a_stable_connection_has_the_shortest_pause() -> None:
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


async def test_what_was_said_of_rounds_decides_how_long_a_pause_may_be() -> None:
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
    assert retries.longest == [RETURN_WITHIN_S, LONGEST_PAUSE_S]


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
        await coordinator.hang_up()
        await node.notebook.until(lambda: "503" in node.notebook.links[-1].reason)
        clock.now += HURRY_S
        tries = len(retries.longest)
        await node.notebook.until(lambda: len(retries.longest) > tries + 1)
    assert set(retries.longest[:2]) == {RETURN_WITHIN_S}
    assert retries.longest[-1] == LONGEST_PAUSE_S


async def test_a_server_that_accepts_and_drops_at_once_meets_growing_pauses() -> None:
    retries = Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries) as node,
    ):
        for _ in range(4):
            await lose(coordinator, node)
    assert retries.attempts == [0, 1, 2, 3]


async def test_a_long_wait_for_the_welcome_is_no_stable_connection() -> None:
    clock, retries = Clock(), Retries()
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator, backoff=retries, clock=clock) as node,
    ):
        coordinator.silent.add(Hello)
        await coordinator.hang_up()
        await coordinator.heard(Hello, count=2)
        clock.now += STABLE_S
        coordinator.silent.clear()
        await lose(coordinator, node)
        await lose(coordinator, node)
    assert retries.attempts == [0, 1, 2]


async def test_a_request_without_reply_is_given_up_after_its_time() -> None:
    coordinator = Coordinator()
    coordinator.silent.add(RequestRound)
    async with running(coordinator), running_connection(coordinator) as node:
        with pytest.raises(UnansweredError, match="no reply"):
            await node.connection.request(RequestRound(id="r"), RoundState, timeout_s=0.05)


async def test_a_request_that_the_loss_of_the_connection_overtakes_is_unanswered() -> None:
    coordinator = Coordinator()
    coordinator.silent.add(RequestRound)
    async with running(coordinator), running_connection(coordinator) as node:
        asked = asyncio.create_task(node.client.round())
        await coordinator.heard(RequestRound)
        await coordinator.stop()
        with pytest.raises(UnansweredError, match="lost"):
            await asked
        await coordinator.start()


async def test_a_refusal_reaches_who_asked_and_keeps_the_connection() -> None:
    coordinator = Coordinator()
    coordinator.refusals[RequestRound] = ErrorCode.RATE_LIMITED
    async with running(coordinator), running_connection(coordinator) as node:
        with pytest.raises(RefusedError) as refusal:
            await node.client.round()
        assert refusal.value.retry_after == 0.01
        assert node.connection.connected.is_set()


async def test_a_reply_of_another_kind_is_refused() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        with pytest.raises(RefusedError, match="RoundState"):
            await node.connection.request(RequestRound(id="r"), Standing)


async def test_fields_that_a_newer_server_sends_are_ignored() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.send_raw(with_field(SeasonState(None, None), "mood", "sunny"))
        await node.notebook.until(lambda: node.notebook.doorbells == [SeasonState(None, None)])


async def test_a_message_that_a_newer_server_sends_is_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.send_raw('{"type": "weather.state", "reply_to": null}')
        await coordinator.send_raw("not json")
        await coordinator.send_raw(encode(RoundState(None, None, now())))
        await node.notebook.until(lambda: len(node.notebook.doorbells) == 1)
        assert node.connection.connected.is_set()
    assert "weather.state" in caplog.text


async def test_the_token_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="")
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator) as node:
            await node.client.round()
        with pytest.raises(CoordinatorRefusedError):
            await check_admission(coordinator.site.socket, "another-token")
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("node_client")]
    assert not any(TOKEN in line or "another-token" in line for line in ours)


async def test_a_node_that_stops_says_goodbye() -> None:
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator):
            pass
        assert await coordinator.farewell() == CloseCode.GOING_AWAY


async def test_admission_can_be_tested_without_staying() -> None:
    async with running(Coordinator()) as coordinator:
        await check_admission(coordinator.site.socket, TOKEN)
        with pytest.raises(CoordinatorRefusedError):
            await check_admission(coordinator.site.socket, "wrong")
    with pytest.raises(UnansweredError):
        await check_admission(coordinator.site.socket, TOKEN)


async def test_a_connection_is_renewed_when_asked_and_welcomed_anew() -> None:
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator) as node,
    ):
        node.connection.renew(after_s=0)
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
        assert await coordinator.farewell() == CloseCode.GOING_AWAY


async def test_asking_for_a_renewal_without_a_connection_changes_nothing() -> None:
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator) as node:
            await coordinator.stop()
            await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
            node.connection.renew(after_s=0)
            await coordinator.start()
            await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
            await node.client.round()
        assert len(node.notebook.welcomes) == 2


async def test_hardware_is_left_out_for_a_coordinator_that_knows_no_such_field() -> None:
    coordinator = Coordinator()
    coordinator.knows_hardware = False
    hello = msgspec.structs.replace(HELLO, hardware=Hardware("GPU", 1 << 30))
    async with running(coordinator), running_connection(coordinator, hello=hello):
        hellos = await coordinator.heard(Hello)
    assert [said.hardware for said in hellos] == [hello.hardware, None]


async def test_a_key_is_left_out_for_a_coordinator_that_knows_no_such_field() -> None:
    coordinator = Coordinator()
    coordinator.knows_hardware = False
    hello = msgspec.structs.replace(HELLO, key="ab" * 32)
    async with running(coordinator), running_connection(coordinator, hello=hello):
        hellos = await coordinator.heard(Hello)
    assert [said.key for said in hellos] == ["ab" * 32, None]
