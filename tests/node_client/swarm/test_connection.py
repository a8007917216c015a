import asyncio
import logging
from http import HTTPStatus

import msgspec
import pytest
from websockets.frames import CloseCode

from node_client.errors import CoordinatorRefusedError
from node_client.swarm.connection import CoordinatorConnection
from node_client.swarm.handshake import UnansweredError, check_admission
from swarm_protocol.codec import encode
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import (
    Hardware,
    Hello,
    NodeStanding,
    Refused,
    RequestRound,
    RoundState,
    SeasonState,
)
from tests.node_client.coordinator import TOKEN, Coordinator, now, running, with_field
from tests.node_client.shell_fakes import (
    HELLO,
    Notebook,
    no_backoff,
    running_connection,
)


async def run_until_refused(coordinator: Coordinator, *, token: str = TOKEN) -> Exception:
    connection = CoordinatorConnection(
        url=coordinator.site.socket,
        token=token,
        hello=HELLO,
        listener=Notebook(),
        backoff=no_backoff,
    )
    with pytest.raises(CoordinatorRefusedError) as refusal:
        async with asyncio.timeout(20):
            await connection.run()
    return refusal.value


async def test_token_is_in_the_handshake_and_compression_is_off() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator):
        headers = coordinator.headers[0]
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert "Sec-WebSocket-Extensions" not in headers


async def test_wrong_token_ends_the_client_with_the_message_of_the_server() -> None:
    async with running(Coordinator()) as coordinator:
        refusal = await run_until_refused(coordinator, token="wrong")
    assert isinstance(refusal, CoordinatorRefusedError)
    assert (refusal.code, refusal.message) == ("auth.invalid", "This token is unknown.")
    assert "new one" in refusal.fix


async def test_denial_without_a_message_of_the_server_is_explained() -> None:
    coordinator = Coordinator()
    coordinator.denial = (HTTPStatus.UNAUTHORIZED, "")
    async with running(coordinator):
        refusal = await run_until_refused(coordinator)
    assert isinstance(refusal, CoordinatorRefusedError)
    assert "token" in refusal.message


@pytest.mark.parametrize("code", [ErrorCode.PROTOCOL_VERSION, ErrorCode.CLIENT_TOO_OLD])
async def test_fatal_reply_to_the_hello_ends_the_client(code: ErrorCode) -> None:
    coordinator = Coordinator()
    coordinator.refusals[Hello] = code
    async with running(coordinator):
        refusal = await run_until_refused(coordinator)
    assert isinstance(refusal, CoordinatorRefusedError)
    assert refusal.code == code


async def test_later_fatal_error_ends_the_client() -> None:
    async with running(Coordinator()) as coordinator:
        ended = asyncio.create_task(run_until_refused(coordinator))
        await coordinator.wait_for(Hello)
        code = ErrorCode.AUTH_SUPERSEDED
        # The hello is received before it is answered, so ring until the node listens.
        while not ended.done():
            await coordinator.ring(Refused(None, code, "Replaced.", "Stop one.", fatal=True))
            await asyncio.wait([ended], timeout=0.01)
        refusal = ended.result()
    assert isinstance(refusal, CoordinatorRefusedError)
    assert (refusal.code, refusal.fix) == (code, "Stop one.")


async def test_request_without_a_reply_times_out() -> None:
    coordinator = Coordinator()
    coordinator.silent.add(RequestRound)
    async with running(coordinator), running_connection(coordinator) as node:
        with pytest.raises(UnansweredError, match="no reply"):
            await node.connection.request(RequestRound(id="r"), RoundState, timeout_s=0.05)


async def test_request_is_unanswered_if_the_connection_is_lost() -> None:
    coordinator = Coordinator()
    coordinator.silent.add(RequestRound)
    async with running(coordinator), running_connection(coordinator) as node:
        pending = asyncio.create_task(node.client.request_round())
        await coordinator.wait_for(RequestRound)
        await coordinator.stop()
        with pytest.raises(UnansweredError, match="lost"):
            await pending
        await coordinator.start()


async def test_refusal_is_raised_to_the_requester_and_the_connection_stays_open() -> None:
    coordinator = Coordinator()
    coordinator.refusals[RequestRound] = ErrorCode.RATE_LIMITED
    async with running(coordinator), running_connection(coordinator) as node:
        with pytest.raises(RefusedError) as refusal:
            await node.client.request_round()
        assert refusal.value.retry_after == 0.01
        assert node.connection.connected.is_set()


async def test_reply_of_another_type_is_refused() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        with pytest.raises(RefusedError, match="RoundState"):
            await node.connection.request(RequestRound(id="r"), NodeStanding)


async def test_unknown_fields_from_a_newer_server_are_ignored() -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.send_raw(with_field(SeasonState(None, None), "mood", "sunny"))
        await node.notebook.until(lambda: node.notebook.doorbells == [SeasonState(None, None)])


async def test_unknown_message_from_a_newer_server_is_logged_and_skipped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        await coordinator.send_raw('{"type": "weather.state", "reply_to": null}')
        await coordinator.send_raw("not json")
        await coordinator.send_raw(encode(RoundState(None, None, now())))
        await node.notebook.until(lambda: len(node.notebook.doorbells) == 1)
        assert node.connection.connected.is_set()
    assert "weather.state" in caplog.text


async def test_token_is_never_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="")
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator) as node:
            await node.client.request_round()
        with pytest.raises(CoordinatorRefusedError):
            await check_admission(coordinator.site.socket, "another-token")
    ours = [each.getMessage() for each in caplog.records if each.name.startswith("node_client")]
    assert not any(TOKEN in line or "another-token" in line for line in ours)


async def test_stopping_node_closes_the_connection_with_going_away() -> None:
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator):
            pass
        assert await coordinator.close_code() == CloseCode.GOING_AWAY


async def test_admission_can_be_checked_without_a_lasting_connection() -> None:
    async with running(Coordinator()) as coordinator:
        await check_admission(coordinator.site.socket, TOKEN)
        with pytest.raises(CoordinatorRefusedError):
            await check_admission(coordinator.site.socket, "wrong")
    with pytest.raises(UnansweredError):
        await check_admission(coordinator.site.socket, TOKEN)


async def test_renew_replaces_the_connection() -> None:
    async with (
        running(Coordinator()) as coordinator,
        running_connection(coordinator) as node,
    ):
        node.connection.reconnect(after_s=0)
        await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
        assert await coordinator.close_code() == CloseCode.GOING_AWAY


async def test_renew_without_a_connection_has_no_effect() -> None:
    async with running(Coordinator()) as coordinator:
        async with running_connection(coordinator) as node:
            await coordinator.stop()
            await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
            node.connection.reconnect(after_s=0)
            await coordinator.start()
            await node.notebook.until(lambda: len(node.notebook.welcomes) == 2)
            await node.client.request_round()
        assert len(node.notebook.welcomes) == 2


@pytest.mark.parametrize("after_s", [60, 0], ids=["later", "now"])
async def test_suspended_node_disconnects_at_once_although_it_was_due_to_reconnect(
    after_s: float,
) -> None:
    async with running(Coordinator()) as coordinator, running_connection(coordinator) as node:
        node.connection.reconnect(after_s=after_s)
        await asyncio.sleep(0)
        node.connection.suspend()
        await node.notebook.until(lambda: node.notebook.links[-1].phase == "waiting")
        assert await coordinator.close_code() == CloseCode.GOING_AWAY
        assert len(node.notebook.welcomes) == 1


async def test_hardware_is_omitted_for_a_coordinator_without_that_field() -> None:
    coordinator = Coordinator()
    coordinator.supports_hardware = False
    hello = msgspec.structs.replace(HELLO, hardware=Hardware("GPU", 1 << 30))
    async with running(coordinator), running_connection(coordinator, hello=hello):
        hellos = await coordinator.wait_for(Hello)
    assert [each.hardware for each in hellos] == [hello.hardware, None]


async def test_key_is_omitted_for_a_coordinator_without_that_field() -> None:
    coordinator = Coordinator()
    coordinator.supports_hardware = False
    hello = msgspec.structs.replace(HELLO, key="ab" * 32)
    async with running(coordinator), running_connection(coordinator, hello=hello):
        hellos = await coordinator.wait_for(Hello)
    assert [each.key for each in hellos] == ["ab" * 32, None]
