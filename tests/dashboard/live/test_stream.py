"""Test the deltas of a view: their content, and how long they are available."""

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from swarm_web.dashboard.live import socket as live_socket
from swarm_web.dashboard.live.board import STALE_S
from swarm_web.dashboard.live.stream import RING_DELTAS, Packet, ViewStream
from swarm_web.dashboard.live.views import LiveView, describe_delta

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def make_view(*, pill: str = "pill", lead: str = "", **rows: str) -> LiveView:
    return LiveView(NOON, pill, rows=rows, order=tuple(rows), regions={"lead": lead})


def read(packet: Packet) -> dict[str, Any]:
    message: dict[str, Any] = json.loads(packet.text)
    return message


def test_delta_contains_only_changes() -> None:
    delta = describe_delta(make_view(a="1", b="2"), make_view(a="1", b="3"))
    assert delta["rows"] == {"b": "3"}
    assert delta["regions"] == {}
    assert not {"pill", "order"} & delta.keys()


def test_delta_contains_a_changed_order() -> None:
    delta = describe_delta(make_view(a="1", b="2"), make_view(b="2", a="1"))
    assert delta["order"] == ("b", "a")


def test_delta_contains_changed_regions() -> None:
    delta = describe_delta(make_view(lead="amber leads"), make_view(lead="bold leads"))
    assert delta["regions"] == {"lead": "bold leads"}


def test_every_message_contains_the_state() -> None:
    stream = ViewStream(replace(make_view(), state="before"))
    assert read(stream.snapshot())["state"] == "before"
    stream.advance(replace(make_view(), state="after"))
    assert read(stream.snapshot())["state"] == read(stream.greet_again())["state"] == "after"
    assert describe_delta(make_view(), stream.view)["state"] == "after"


async def test_socket_continues_at_its_sequence_number() -> None:
    stream = ViewStream(make_view(a="1"))
    stream.advance(make_view(a="2"))
    stream.advance(make_view(a="3"))
    first = await stream.wait_after(0)
    assert read(first)["rows"] == {"a": "2"}
    assert read(await stream.wait_after(first.seq))["rows"] == {"a": "3"}


async def test_waiting_socket_receives_the_next_delta() -> None:
    stream = ViewStream(make_view(a="1"))
    waiting = asyncio.create_task(stream.wait_after(0))
    await asyncio.sleep(0)
    stream.advance(make_view(a="2"))
    assert read(await waiting)["seq"] == 1


async def test_socket_that_joins_a_view_is_closed_when_its_last_reading_is_too_old() -> None:
    stream, sent = ViewStream(make_view()), list[Any]()
    stream._read_at -= STALE_S

    async def send(event: Any) -> None:
        sent.append(event)

    async with asyncio.timeout(STALE_S / 2):
        await live_socket._send_updates(stream, send, {})
    assert [(event["type"], event.get("code")) for event in sent] == [
        ("websocket.send", None),
        ("websocket.close", live_socket.CLOSE_UNREADABLE),
    ]


async def test_socket_behind_the_oldest_delta_receives_a_snapshot() -> None:
    stream = ViewStream(make_view(a="0"))
    for number in range(RING_DELTAS + 1):
        stream.advance(make_view(a=str(number + 1)))
    packet = await stream.wait_after(0)
    assert (read(packet)["type"], packet.seq) == ("snapshot", RING_DELTAS + 1)
    assert (await stream.wait_after(1)).seq == 2


def test_stream_can_be_resumed_only_while_its_deltas_are_available() -> None:
    stream = ViewStream(make_view(a="0"))
    assert stream.resume(f"{stream.epoch}:0") == 0
    for number in range(RING_DELTAS + 1):
        stream.advance(make_view(a=str(number + 1)))
    assert stream.resume(f"{stream.epoch}:{stream.seq}") == stream.seq
    assert stream.resume(f"{stream.epoch}:1") == 1
    assert stream.resume(f"{stream.epoch}:0") is None
    assert stream.resume(f"{stream.epoch}:{stream.seq + 1}") is None


@pytest.mark.parametrize("after", ["", "x", "x:1", ":", ":1"])
def test_stream_is_not_resumed_after_an_invalid_position(after: str) -> None:
    assert ViewStream(make_view()).resume(after) is None


@pytest.mark.parametrize("seq", ["", "9" * 4401, "x", "\u0660"], ids=["no", "long", "x", "arab"])
def test_stream_is_not_resumed_after_an_invalid_number(seq: str) -> None:
    stream = ViewStream(make_view())
    assert stream.resume(f"{stream.epoch}:{seq}") is None


def test_reading_older_than_the_current_one_is_ignored() -> None:
    stream = ViewStream(replace(make_view(a="new"), as_of=NOON + timedelta(seconds=1)))
    stream.advance(make_view(a="old"))
    assert (stream.seq, stream.view.rows) == (0, {"a": "new"})


def test_packets_are_encoded_and_compressed_once() -> None:
    stream = ViewStream(make_view(a="1"))
    assert stream.snapshot() is stream.snapshot()
    packet = stream.snapshot()
    assert packet.packed is packet.packed
    assert gzip.decompress(packet.packed).decode() == packet.text
