"""Roster: replacement, revocation, presence and stalled sockets of a process's connections."""

import asyncio
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from judge.models import Season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_web.core import bus
from swarm_web.core.store import async_redis
from swarm_web.gateway import roster
from swarm_web.gateway.session import shared_reads
from swarm_web.nodes.models import Node
from tests.gateway.conftest import Member
from tests.sockets import PATIENCE_S


class Connection:
    """A fake connection that records the roster's calls."""

    def __init__(self, node: Node, *, opened_ns: int = 1, greeted: bool = True) -> None:
        self.node, self.opened_ns, self.greeted = node, opened_ns, greeted
        self.sending_since = 0.0
        self.rings: list[str] = []
        self.ended: list[ErrorCode] = []
        self.dropped = asyncio.Event()
        self.is_read_on = asyncio.Event()
        self.was_ended = asyncio.Event()
        self.was_rung = asyncio.Event()

    def ring(self, payload: str) -> None:
        self.rings.append(payload)
        self.was_rung.set()

    def end(self, code: ErrorCode, message: str) -> None:
        self.ended.append(code)
        self.was_ended.set()

    def read_on(self) -> None:
        self.is_read_on.set()

    def drop(self) -> None:
        self.dropped.set()

    def dismiss(self, refusal: RefusedError) -> None:
        self.ended.append(ErrorCode(refusal.code))


async def wait(event: asyncio.Event) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await event.wait()


async def test_later_connection_of_a_node_replaces_the_earlier_one(amber: Member) -> None:
    listed = roster.roster()
    old, new = Connection(amber.node), Connection(amber.node, opened_ns=2)
    await listed.enter(old)
    await listed.enter(new)
    assert (old.ended, new.ended) == ([ErrorCode.AUTH_SUPERSEDED], [])
    assert (listed.is_listed(old), listed.is_listed(new)) == (False, True)


async def test_closing_a_replaced_connection_does_not_mark_the_node_as_gone(amber: Member) -> None:
    await Node.objects.aupdate(last_seen=timezone.now(), left_at=None)
    listed = roster.roster()
    old, new = Connection(amber.node), Connection(amber.node, opened_ns=2)
    await listed.enter(old)
    await listed.enter(new)
    await listed.remove(old, goodbye=True, now=timezone.now())
    assert listed.is_listed(new)
    assert (await Node.objects.aget(pk=amber.node.pk)).left_at is None


async def test_later_connection_in_another_process_replaces_the_earlier_one(amber: Member) -> None:
    here, there = roster.roster(), roster.Roster(shared_reads())
    old, new = Connection(amber.node), Connection(amber.node, opened_ns=2)
    try:
        await here.enter(old)
        await there.enter(new)
        await wait(old.was_ended)
        assert new.ended == []
        await here.remove(old, goodbye=False, now=timezone.now())
        assert (await Node.objects.aget(pk=amber.node.pk)).left_at is None
    finally:
        await there.close()


@pytest.mark.parametrize("topic", [bus.ARRIVALS, bus.LOOK_AGAIN])
async def test_invalid_message_on_a_topic_does_not_stop_doorbells(
    amber: Member, topic: str
) -> None:
    one = Connection(amber.node)
    await roster.roster().enter(one)
    await async_redis().publish(topic, "{")
    await async_redis().publish(bus.NODES, "ring")
    await wait(one.was_rung)


async def test_blocked_node_is_disconnected_by_the_doorbell(amber: Member, bold: Member) -> None:
    one, other = Connection(amber.node), Connection(bold.node)
    for each in (one, other):
        await roster.roster().enter(each)
    await Node.objects.filter(pk=amber.node.pk).aupdate(blocked=True)
    await async_redis().publish(bus.LOOK_AGAIN, str(amber.node.pk))
    await wait(one.was_ended)
    assert (one.ended, other.ended) == ([ErrorCode.AUTH_INVALID], [])


async def test_doorbell_updates_the_nodes_owner(amber: Member) -> None:
    one = Connection(amber.node)
    await roster.roster().enter(one)
    owner = await User.objects.acreate(username="olive")
    await Node.objects.filter(pk=amber.node.pk).aupdate(owner=owner)
    await async_redis().publish(bus.LOOK_AGAIN, str(amber.node.pk))
    async with asyncio.timeout(PATIENCE_S):
        while one.node.owner_id is None:  # noqa: ASYNC110 - no event for it
            await asyncio.sleep(0.01)
    assert one.node.party == f"owner {owner.pk}"


async def test_greeted_nodes_are_touched_in_batches(
    amber: Member, bold: Member, season: Season, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "TOUCH_S", 0.01)
    monkeypatch.setattr(roster, "_TOUCHED_AT_ONCE", 1)
    before = timezone.now() - timedelta(hours=1)
    calm = await Node.objects.acreate(name="calm", token_hash="calm", last_seen=before)
    await Node.objects.aupdate(last_seen=before)
    for node, greeted in ((amber.node, True), (bold.node, True), (calm, False)):
        await roster.roster().enter(Connection(node, greeted=greeted))
    touched = Node.objects.filter(last_seen__gt=before)
    async with asyncio.timeout(PATIENCE_S):
        while await touched.acount() < 2:  # noqa: ASYNC110 - Postgres has no event for it
            await asyncio.sleep(0.01)
    assert (await Node.objects.aget(name="calm")).last_seen == before


async def test_stalled_socket_is_dropped_and_others_are_not(
    amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "LOOK_S", 0.01)
    stuck, healthy = Connection(amber.node), Connection(bold.node)
    now = asyncio.get_running_loop().time()
    stuck.sending_since, healthy.sending_since = now - roster.STALLED_S - 1, now
    for each in (stuck, healthy):
        await roster.roster().enter(each)
    await wait(stuck.dropped)
    assert not healthy.dropped.is_set()


async def test_stalled_socket_is_dropped_after_it_was_replaced(
    amber: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "LOOK_S", 0.01)
    stuck, later = Connection(amber.node), Connection(amber.node, opened_ns=2)
    stuck.sending_since = asyncio.get_running_loop().time() - roster.STALLED_S - 1
    await roster.roster().enter(stuck)
    await roster.roster().enter(later)
    await wait(stuck.dropped)


async def test_unread_socket_is_read_on_before_it_is_dropped(
    amber: Member, bold: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(roster, "LOOK_S", 0.01)
    slow, healthy = Connection(amber.node), Connection(bold.node)
    now = asyncio.get_running_loop().time()
    slow.sending_since, healthy.sending_since = now - roster.UNREAD_S - 1, now
    for each in (slow, healthy):
        await roster.roster().enter(each)
    await wait(slow.is_read_on)
    assert not slow.dropped.is_set()
    assert not healthy.is_read_on.is_set()
