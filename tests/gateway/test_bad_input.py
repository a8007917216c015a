"""Invalid input of a broken or hostile client, over a real socket.

Each input is refused with its code and counted, ends the connection only where docs/protocol.md
says so, and does not affect another connected node.
"""

import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from judge.models import Season
from swarm_protocol.codec import MAX_FRAME_BYTES, encode
from swarm_protocol.messages import (
    Completion,
    PublishRollouts,
    Refused,
    RolloutsPublished,
    RoundState,
)
from swarm_protocol.version import PROTOCOL_VERSION
from swarm_web.relay.models import Contribution
from tests.factories import make_hello, make_rollout
from tests.gateway.conftest import Member
from tests.gateway.refusals import ASK, assert_refused, two_nodes
from tests.gateway.sessions import read_counts
from tests.sockets import NodeSocket, node_socket


def publish_frame(season: Season, **changes: Any) -> str:
    """Return a publish whose only rollout has some fields replaced, as raw JSON."""
    message = PublishRollouts(id="bad", rollouts=[make_rollout(season)])
    body = json.loads(encode(message))
    body["rollouts"][0] |= changes
    return json.dumps(body)


# ---- version and token; see also test_auth.py


async def test_hello_of_an_old_protocol_version_ends_the_connection(
    gateway: str, amber: Member, bold: Member
) -> None:
    hello = json.loads(encode(make_hello())) | {"protocol": PROTOCOL_VERSION - 1, "old_field": 1}
    async with (
        node_socket(gateway, bold.token) as bystander,
        node_socket(gateway, amber.token, greet=False) as sender,
    ):
        await sender.send(json.dumps(hello))
        refused = await sender.hear()
        assert isinstance(refused, Refused)
        assert (refused.code, refused.fatal) == ("protocol.version", True)
        assert await sender.close_code() == 4426
        assert isinstance(await bystander.ask(ASK), RoundState)
    assert (await read_counts())["refused"] == {"protocol.version": 1}


async def test_wrong_token_does_not_affect_another_node(gateway: str, bold: Member) -> None:
    async with node_socket(gateway, bold.token) as bystander:
        with pytest.raises(Exception, match="401"):
            async with node_socket(gateway, "swarm_wrong"):
                pass
        assert isinstance(await bystander.ask(ASK), RoundState)
    assert (await read_counts())["refused"] == {"auth.invalid": 1}


# ---- frames


async def test_too_large_frame_is_refused(gateway: str, amber: Member, bold: Member) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, " " * (MAX_FRAME_BYTES + 1), "protocol.too_large")


async def test_frame_above_the_transport_limit_ends_the_connection(
    gateway: str, amber: Member, bold: Member
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        with suppress(ConnectionClosed):  # The server closes before all of it is sent.
            await sender.send(" " * (4 * MAX_FRAME_BYTES + 1))
        assert await sender.close_code() == 1009


@pytest.mark.parametrize(
    "frame",
    [
        "",
        "hello",
        "{",
        '{"type": "round.request", "id": "bad"} {}',
        '{"x": ' + "[" * 100_000,
        b'{"type": "round.request", "id": "bad"}',
    ],
    ids=["empty", "word", "truncated", "two-objects", "deeply-nested", "binary"],
)
async def test_frame_that_is_not_json_is_refused(
    gateway: str, amber: Member, bold: Member, frame: str | bytes
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, frame, "protocol.not_json")


@pytest.mark.parametrize(
    "frame", ["null", "[]", "{}", '{"type": 7, "id": "bad"}', '{"type": "round.request"}']
)
async def test_json_that_is_not_a_message_is_refused(
    gateway: str, amber: Member, bold: Member, frame: str
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, frame, "protocol.invalid")


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ('{"type": "rollouts.steal", "id": "bad"}', "protocol.unknown_type"),
        (
            '{"type": "round.state", "id": "bad", "round": null, "now": ""}',
            "protocol.unknown_type",
        ),
        ('{"type": "round.request", "id": "bad", "reward": 1}', "protocol.invalid"),
    ],
    ids=["unknown-type", "server-message", "unknown-field"],
)
async def test_refusal_of_a_message_names_its_id(
    gateway: str, amber: Member, bold: Member, frame: str, code: str
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, frame, code, reply_to="bad")


# ---- rollouts


COMPLETION = {"text": "2", "finish_reason": "stop"}


@pytest.mark.parametrize(
    "fields",
    [
        {"reward": 1.0},
        *({"completions": count * [COMPLETION]} for count in (0, 1, 65, 10_000)),
        {"completions": 2 * [COMPLETION | {"text": "2\x00"}]},
        {"completions": 2 * [COMPLETION | {"text": "2" * 16_385}]},
    ],
    ids=["reward", "0", "1", "65", "10000", "nul-bytes", "too-long"],
)
async def test_rollout_with_invalid_fields_is_refused(
    gateway: str, season: Season, amber: Member, bold: Member, fields: dict[str, Any]
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        frame = publish_frame(season, **fields)
        await assert_refused(sender, frame, "protocol.invalid", reply_to="bad")


async def assert_rejected(sender: NodeSocket, message: PublishRollouts, code: str) -> None:
    """Check that a batch's last rollout is rejected with a code and the others are accepted."""
    published = await sender.ask(message)
    assert isinstance(published, RolloutsPublished)
    assert published.accepted == len(message.rollouts) - 1
    [rejected] = published.rejected
    assert (rejected.item, rejected.code) == (message.rollouts[-1].id, code)
    assert rejected.message
    assert rejected.fix
    assert (await read_counts())["refused"] == {code: 1}
    contribution = await Contribution.objects.aget()
    assert (contribution.published, contribution.rejected) == (published.accepted, 1)


def batch_with(season: Season, **changes: Any) -> PublishRollouts:
    """Return a batch of a good rollout and one whose task has some fields replaced."""
    good, bad = make_rollout(season), make_rollout(season)
    bad = msgspec.structs.replace(bad, task=msgspec.structs.replace(bad.task, **changes))
    return PublishRollouts(id="batch", rollouts=[good, bad])


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"dataset": "no_such_dataset"}, "task.dataset"),
        ({"dataset": "countdown"}, "task.dataset"),
        ({"config": {"min_terms": 2, "max_terms": 10**9}}, "task.config"),
        ({"config": {"min_terms": 2, "max_terms": 5}}, "task.config"),
        ({"config": {"unheard_of": True}}, "task.config"),
        ({"seed": 0}, "task.foreign"),
        ({"generator": "reasoning-gym 0.0.1"}, "task.foreign"),
        ({"index": 2**31 - 1}, "task.index"),
    ],
    ids=[
        "unknown-dataset",
        "dataset-with-executed-answers",
        "config-out-of-range",
        "config-of-another-season",
        "unknown-config-field",
        "another-seed",
        "another-generator-version",
        "index-of-the-judges-part",
    ],
)
async def test_rollout_of_a_task_outside_the_season_is_rejected(
    gateway: str, amber: Member, bold: Member, season: Season, changes: dict[str, Any], code: str
) -> None:
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_rejected(sender, batch_with(season, **changes), code)


async def test_too_large_rollout_is_rejected(
    gateway: str, amber: Member, bold: Member, season: Season
) -> None:
    long = Completion(text=10_000 * "2", finish_reason="length")
    batch = batch_with(season)
    large = msgspec.structs.replace(batch.rollouts[-1], completions=14 * [long])
    batch = msgspec.structs.replace(batch, rollouts=[*batch.rollouts[:-1], large])
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_rejected(sender, batch, "protocol.too_large")


@pytest.mark.parametrize(
    ("text", "more"), [("2", 1), ("2" * 9_000, 0)], ids=["more-completions", "longer-completions"]
)
async def test_rollout_unlike_the_seasons_rollouts_is_rejected(
    gateway: str, amber: Member, bold: Member, season: Season, text: str, more: int
) -> None:
    batch = batch_with(season)
    answers = (season.completions + more) * [Completion(text=text, finish_reason="stop")]
    useless = msgspec.structs.replace(batch.rollouts[-1], completions=answers)
    batch = msgspec.structs.replace(batch, rollouts=[*batch.rollouts[:-1], useless])
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_rejected(sender, batch, "relay.rollout")


async def test_completion_with_a_lone_surrogate_is_refused(
    gateway: str, season: Season, amber: Member, bold: Member
) -> None:
    completions = 2 * [{"text": "2\ud800", "finish_reason": "stop"}]
    async with two_nodes(gateway, amber, bold) as sender:
        frame = publish_frame(season, completions=completions)
        assert r"\ud800" in frame
        await assert_refused(sender, frame, "protocol.not_json")


async def test_request_for_rollouts_without_a_season_is_refused(
    gateway: str, amber: Member, bold: Member
) -> None:
    frame = '{"type": "rollouts.request", "id": "bad", "count": 1}'
    async with two_nodes(gateway, amber, bold) as sender:
        await assert_refused(sender, frame, "season.none", reply_to="bad")


# ---- rate limits and arms


async def test_messages_above_the_rate_limit_are_refused(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST = 3
    settings.GATEWAY_MESSAGES_PER_SECOND = 0.5
    async with two_nodes(gateway, amber, bold) as sender:  # Its hello was the first of three.
        replies = [await sender.ask(ASK) for _ in range(3)]
    assert [type(reply) for reply in replies] == [RoundState, RoundState, Refused]
    assert isinstance(replies[2], Refused)
    assert replies[2].code == "rate.limited"
    assert replies[2].retry_after is not None
    assert 0 < replies[2].retry_after <= 4
    assert (await read_counts())["refused"] == {"rate.limited": 1}


async def test_undecodable_frames_count_towards_the_rate_limit(
    gateway: str, amber: Member, bold: Member, settings: Any
) -> None:
    settings.GATEWAY_BURST = 3
    settings.GATEWAY_MESSAGES_PER_SECOND = 0.5
    async with node_socket(gateway, amber.token) as sender:  # Its hello was the first of three.
        codes = []
        for frame in ("no JSON", b"binary", "no JSON", '{"type": "no type", "id": "x"}'):
            await sender.send(frame)
            refused = await sender.hear()
            assert isinstance(refused, Refused)
            codes.append(refused.code)
    assert codes == ["protocol.not_json", "protocol.not_json", "rate.limited", "rate.limited"]
    assert refused.reply_to == "x"


async def test_isolated_node_is_refused_external_rollouts(
    gateway: str, season: Season, amber: Member
) -> None:
    frame = '{"type": "rollouts.request", "id": "bad", "count": 1}'
    async with node_socket(gateway, amber.token, greet=False) as sender:
        await sender.ask(make_hello(arm="isolated"))
        await assert_refused(sender, frame, "relay.isolated", reply_to="bad")
