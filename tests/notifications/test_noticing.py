"""Test notices about silent and returned nodes: each is sent once, to earlier subscribers."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User

from swarm_web.nodes.models import Node
from swarm_web.nodes.services import revoke_token
from swarm_web.notifications.models import Channel, Delivery, NodeNews
from swarm_web.notifications.services.noticing import notice_returns, notice_silences
from tests.factories import make_node
from tests.notifications.conftest import NOW, make_channel, make_owned

SILENT, SCORED = Channel.Event.NODE_SILENT, Channel.Event.ROUND_SCORED
PATIENCE = timedelta(minutes=10)
TOO_LONG_AGO = NOW - timedelta(minutes=11)


def notice(now: datetime = NOW) -> list[tuple[str, str]]:
    """Look for silent and returned nodes; return types and nodes of all deliveries."""
    notice_silences(before=now - PATIENCE, now=now)
    notice_returns(now=now)
    deliveries = Delivery.objects.order_by("created_at", "type")
    return [(delivery.type, delivery.data["node"]) for delivery in deliveries]


def see(node: Node, *, at: datetime) -> None:
    Node.objects.filter(pk=node.pk).update(last_seen=at)


def test_owner_of_a_silent_node_is_notified(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    assert notice() == [("node.silent", node.name)]
    (delivery,) = Delivery.objects.all()
    assert delivery.data == {
        "node": node.name,
        "url": f"http://localhost:8000/nodes/{node.name}/",
        "last_seen": "2026-05-04T11:49:00+00:00",
    }


def test_silence_is_notified_once(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    assert notice(NOW + timedelta(hours=5)) == [("node.silent", node.name)]


def test_notified_silence_is_not_processed_again(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=TOO_LONG_AGO)
    before = NOW - PATIENCE
    assert [notice_silences(before=before, now=NOW) for _ in range(2)] == [1, 0]


def test_silence_is_notified_once_even_if_its_record_was_lost(owner: User) -> None:
    """Two workers may find it at the same moment; the key of the delivery is unique."""
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    NodeNews.objects.all().delete()
    assert notice() == [("node.silent", node.name)]


def test_each_subscribed_channel_is_notified(owner: User) -> None:
    make_channel(owner, SILENT, target="http://127.0.0.1:9/a")
    make_channel(owner, SILENT, target="http://127.0.0.1:9/b")
    make_channel(owner, SCORED, target="http://127.0.0.1:9/c")
    make_owned(owner, last_seen=TOO_LONG_AGO)
    assert len(notice()) == 2


def test_disabled_channel_is_not_notified(owner: User) -> None:
    channel = make_channel(owner, SILENT)
    Channel.objects.filter(pk=channel.pk).update(enabled=False)
    make_owned(owner, last_seen=TOO_LONG_AGO)
    assert notice() == []


def test_inactive_account_is_not_notified(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=TOO_LONG_AGO)
    User.objects.filter(pk=owner.pk).update(is_active=False)
    assert notice() == []


def test_owner_is_not_notified_about_nodes_of_others(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(User.objects.create_user("bob"), last_seen=TOO_LONG_AGO)
    make_node(last_seen=TOO_LONG_AGO)
    assert notice() == []


def test_recently_seen_node_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=NOW - timedelta(minutes=9))
    assert notice() == []


def test_node_that_never_connected_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=None)
    assert notice() == []


def test_node_that_said_goodbye_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=TOO_LONG_AGO, said_goodbye=True)
    assert notice() == []


def test_blocked_node_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=TOO_LONG_AGO, blocked=True)
    assert notice() == []


def test_node_whose_token_was_revoked_is_not_silent(owner: User) -> None:
    make_channel(owner, SILENT)
    revoke_token(make_owned(owner, last_seen=TOO_LONG_AGO))
    assert notice() == []


def test_silence_older_than_the_channel_is_not_notified(owner: User) -> None:
    make_channel(owner, SILENT, since=NOW)
    make_owned(owner, last_seen=TOO_LONG_AGO)
    assert notice() == []


def test_silence_of_days_is_not_notified(owner: User) -> None:
    make_channel(owner, SILENT)
    make_owned(owner, last_seen=NOW - timedelta(days=2))
    assert notice() == []


def test_owner_is_notified_when_the_node_returns(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    later = NOW + timedelta(minutes=1)
    see(node, at=later)
    assert notice(later) == [("node.silent", node.name), ("node.back", node.name)]


def test_return_is_notified_once(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    for minutes in (1, 2):
        later = NOW + timedelta(minutes=minutes)
        see(node, at=later)
        notices = notice(later)
    assert notices == [("node.silent", node.name), ("node.back", node.name)]


def test_return_is_not_notified_to_a_channel_that_missed_the_silence(owner: User) -> None:
    make_channel(owner, SILENT, target="http://127.0.0.1:9/a")
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    late = make_channel(owner, SILENT, target="http://127.0.0.1:9/b", since=NOW)
    later = NOW + timedelta(minutes=1)
    see(node, at=later)
    notice(later)
    assert not late.deliveries.exists()


def test_next_silence_is_notified_again(owner: User) -> None:
    make_channel(owner, SILENT)
    node = make_owned(owner, last_seen=TOO_LONG_AGO)
    notice()
    back = NOW + timedelta(minutes=1)
    see(node, at=back)
    notice(back)
    notices = notice(back + timedelta(minutes=11))
    assert [kind for kind, _ in notices] == ["node.silent", "node.back", "node.silent"]
