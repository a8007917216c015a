"""Silences and returns: each is told once, to whoever wanted to know before."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User

from swarm_web.nodes.models import Node
from swarm_web.notifications.models import Channel, Delivery, NodeNews
from swarm_web.notifications.services.noticing import notice_returns, notice_silences
from tests.factories import make_node
from tests.notifications.conftest import NOW, make_channel, make_owned

SILENT, SCORED = Channel.Event.NODE_SILENT, Channel.Event.ROUND_SCORED
PATIENCE = timedelta(minutes=10)
LONGER = NOW - timedelta(minutes=11)


def notice(now: datetime = NOW) -> list[tuple[str, str]]:
    """Look for silences and returns; return the types and nodes of all that is in the outbox."""
    notice_silences(before=now - PATIENCE, now=now)
    notice_returns(now=now)
    deliveries = Delivery.objects.order_by("created_at", "type")
    return [(delivery.type, delivery.data["node"]) for delivery in deliveries]


def see(node: Node, *, at: datetime) -> None:
    Node.objects.filter(pk=node.pk).update(last_seen=at)


def test_the_owner_of_a_silent_node_is_told(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    assert notice() == [("node.silent", node.name)]
    (delivery,) = Delivery.objects.all()
    assert delivery.data == {
        "node": node.name,
        "url": f"http://localhost:8000/nodes/{node.name}/",
        "last_seen": "2026-05-04T11:49:00+00:00",
    }


def test_a_silence_is_told_once(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    notice()
    assert notice(NOW + timedelta(hours=5)) == [("node.silent", node.name)]


def test_a_silence_that_was_told_is_not_looked_at_again(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=LONGER)
    before = NOW - PATIENCE
    assert [notice_silences(before=before, now=NOW) for _ in range(2)] == [1, 0]


def test_a_silence_is_told_once_though_the_note_of_it_was_lost(owner: User) -> None:
    """Two workers may find it at the same moment: the outbox itself holds it once."""
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    notice()
    NodeNews.objects.all().delete()
    assert notice() == [("node.silent", node.name)]


def test_each_channel_that_wants_it_is_told(owner: User) -> None:
    make_channel(owner, SILENT, target="http://127.0.0.1:9/a")
    make_channel(owner, SILENT, target="http://127.0.0.1:9/b")
    make_channel(owner, SCORED, target="http://127.0.0.1:9/c")
    make_owned(owner, last_seen=LONGER)
    assert len(notice()) == 2


def test_a_channel_that_is_off_is_not_told(owner: User) -> None:
    channel = make_channel(owner, SILENT)
    Channel.objects.filter(pk=channel.pk).update(enabled=False)
    make_owned(owner, last_seen=LONGER)
    assert notice() == []


def test_a_blocked_account_is_not_told(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=LONGER)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert notice() == []


def test_nobody_is_told_of_a_node_of_somebody_else(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(User.objects.create_user("bob"), last_seen=LONGER)
    make_node(last_seen=LONGER)
    assert notice() == []


def test_a_node_that_was_here_lately_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=NOW - timedelta(minutes=9))
    assert notice() == []


def test_a_node_that_never_connected_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=None)
    assert notice() == []


def test_a_node_that_said_goodbye_is_not_missed(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=LONGER, said_goodbye=True)
    assert notice() == []


def test_a_blocked_node_is_not_missed(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=LONGER, blocked=True)
    assert notice() == []


def test_a_silence_that_began_before_the_channel_is_not_told(owner: User) -> None:
    make_channel(owner, SILENT, since=NOW)
    make_owned(owner, last_seen=LONGER)
    assert notice() == []


def test_a_silence_of_days_is_no_news(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=NOW - timedelta(days=2))
    assert notice() == []


def test_the_owner_is_told_when_the_node_is_back(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    notice()
    later = NOW + timedelta(minutes=1)
    see(node, at=later)
    assert notice(later) == [("node.silent", node.name), ("node.back", node.name)]


def test_a_return_is_told_once(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    notice()
    for minutes in (1, 2):
        later = NOW + timedelta(minutes=minutes)
        see(node, at=later)
        told = notice(later)
    assert told == [("node.silent", node.name), ("node.back", node.name)]


def test_a_return_is_not_told_where_the_silence_was_not(owner: User) -> None:
    make_channel(owner, SILENT, target="http://127.0.0.1:9/a")
    node = make_owned(owner, last_seen=LONGER)
    notice()
    late = make_channel(owner, SILENT, target="http://127.0.0.1:9/b", since=NOW)
    later = NOW + timedelta(minutes=1)
    see(node, at=later)
    notice(later)
    assert not late.deliveries.exists()


def test_the_next_silence_is_told_again(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=LONGER)
    notice()
    back = NOW + timedelta(minutes=1)
    see(node, at=back)
    notice(back)
    told = notice(back + timedelta(minutes=11))
    assert [kind for kind, _ in told] == ["node.silent", "node.back", "node.silent"]
