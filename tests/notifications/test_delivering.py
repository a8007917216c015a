"""Test the outbox: due messages are sent, failures are retried, and retries end."""

import json
import threading
from datetime import datetime, timedelta
from queue import SimpleQueue
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from swarm_web.notifications.models import Channel, Delivery, Failure
from swarm_web.notifications.parcels import DeliveryOutcome, Parcel
from swarm_web.notifications.rules import MAX_ATTEMPTS, pause_after
from swarm_web.notifications.services.channels import send_test, switch_off, switch_on
from swarm_web.notifications.services.delivering import (
    LEASE,
    RETENTION,
    lease_parcels,
    prune_deliveries,
    record_outcomes,
)
from swarm_web.notifications.webhook_signing import sign
from tests.notifications.conftest import NOW, make_channel
from tests.notifications.receiver import Receiver

MOST = 100


def put(channel: Channel, *, key: str = "silent:1:1", at: datetime = NOW) -> Delivery:
    """Create a waiting delivery."""
    return Delivery.objects.create(
        channel=channel,
        type=Delivery.Type.NODE_SILENT,
        key=key,
        data={"node": "wren", "url": "http://localhost:8000/nodes/wren/", "last_seen": "then"},
        created_at=at,
    )


def deliver(now: datetime = NOW) -> list[DeliveryOutcome]:
    """Send the due messages and record the outcomes."""
    outcomes = [parcel.send() for parcel in lease_parcels(limit=MOST, now=now)]
    record_outcomes(outcomes, now=now)
    return outcomes


def fail(channel: Channel, *, at: datetime, failure: str = Failure.TIMEOUT) -> None:
    """Record a failure of the due attempt."""
    (parcel,) = lease_parcels(limit=MOST, now=at)
    record_outcomes([parcel.end(failure)], now=at)
    channel.refresh_from_db()


def test_webhook_receives_a_signed_message(owner: User, receiver: Receiver) -> None:
    channel = make_channel(owner, target=receiver.url)
    delivery = put(channel)
    deliver()
    got = receiver.take()
    assert json.loads(got.body) == {
        "type": "node.silent",
        "timestamp": "2026-05-04T12:00:00+00:00",
        "data": delivery.data,
    }
    expected = sign(
        channel.secret,
        message_id=str(delivery.pk),
        timestamp=int(NOW.timestamp()),
        body=got.body,
    )
    assert {name: got.headers[name] for name in expected} == expected


def test_accepted_message_is_sent_once(owner: User, receiver: Receiver) -> None:
    delivery = put(make_channel(owner, target=receiver.url))
    deliver()
    assert deliver(NOW + timedelta(days=1)) == []
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts, delivery.status) == ("sent", 1, 204)


def test_ntfy_server_receives_topic_and_text(owner: User, receiver: Receiver) -> None:
    topic = f"http://127.0.0.1:{receiver.port}/birds"
    put(make_channel(owner, kind=Channel.Kind.NTFY, target=topic))
    deliver()
    got = receiver.take()
    assert got.path == "/"
    message = json.loads(got.body)
    assert message.pop("message").startswith("Murmuration has not heard from the node wren")
    assert message == {
        "topic": "birds",
        "title": "wren is offline",
        "priority": 4,
        "tags": ["warning"],
        "click": "http://localhost:8000/nodes/wren/",
    }


def test_ntfy_message_may_contain_any_characters_and_injects_no_header(
    owner: User, receiver: Receiver
) -> None:
    topic = f"http://127.0.0.1:{receiver.port}/birds"
    delivery = put(make_channel(owner, kind=Channel.Kind.NTFY, target=topic))
    Delivery.objects.filter(pk=delivery.pk).update(data=delivery.data | {"node": "雀\r\nX-Bad: 1"})
    deliver()
    got = receiver.take()
    assert json.loads(got.body)["title"] == "雀\r\nX-Bad: 1 is offline"
    assert "x-bad" not in got.headers


def test_failed_message_is_retried_after_a_pause_with_the_same_id(
    owner: User, receiver: Receiver
) -> None:
    put(make_channel(owner, target=receiver.url))
    receiver.status = 500
    deliver()
    assert deliver(NOW + pause_after(1) - timedelta(seconds=1)) == []
    receiver.status = 200
    deliver(NOW + pause_after(1))
    first, second = receiver.take(), receiver.take()
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body
    assert Delivery.objects.get().state == Delivery.State.SENT


@pytest.mark.parametrize(
    ("status", "failure"), [(500, "status"), (404, "status"), (302, "redirected"), (410, "gone")]
)
def test_response_other_than_success_is_a_failure(
    owner: User, receiver: Receiver, status: int, failure: str
) -> None:
    delivery = put(make_channel(owner, target=receiver.url))
    receiver.status = status
    deliver()
    delivery.refresh_from_db()
    assert (delivery.failure, delivery.status) == (failure, status)


def test_number_of_attempts_is_limited(owner: User) -> None:
    channel = make_channel(owner)
    delivery = put(channel)
    now = NOW
    for _ in range(MAX_ATTEMPTS):
        fail(channel, at=now)
        now = channel.next_attempt_at or now
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("failed", MAX_ATTEMPTS)
    assert lease_parcels(limit=MOST, now=now + timedelta(days=1)) == []


def test_channel_that_fails_for_days_is_switched_off_with_a_reason(owner: User) -> None:
    channel = make_channel(owner)
    now = NOW
    while channel.enabled:
        put(channel, key=f"silent:1:{now}", at=now)
        fail(channel, at=now)
        now = channel.next_attempt_at or now
    assert timedelta(days=3) <= now - NOW < timedelta(days=5)
    assert (channel.off_because, channel.failure) == ("failing", "timeout")
    assert not channel.deliveries.waiting().exists()


def test_success_resets_the_failure_count(owner: User, receiver: Receiver) -> None:
    channel = make_channel(owner, target=receiver.url)
    put(channel)
    fail(channel, at=NOW)
    assert (channel.failures, channel.failing_since) == (1, NOW)
    deliver(NOW + pause_after(1))
    channel.refresh_from_db()
    assert (channel.failures, channel.failing_since) == (0, None)
    assert (channel.failed_at, channel.failure) == (NOW, "timeout")


def test_channel_is_switched_off_immediately_if_its_receiver_is_gone(owner: User) -> None:
    channel = make_channel(owner)
    put(channel, key="silent:1:1")
    put(channel, key="silent:1:2")
    fail(channel, at=NOW, failure=Failure.GONE)
    assert (channel.enabled, channel.off_because) == (False, "gone")
    assert set(channel.deliveries.values_list("state", flat=True)) == {"dropped"}


def test_failing_channel_does_not_delay_other_channels(owner: User, receiver: Receiver) -> None:
    bad, good = make_channel(owner), make_channel(owner, target=receiver.url)
    put(bad)
    fail(bad, at=NOW)
    put(bad, key="silent:2:1")
    put(good)
    deliver(NOW + timedelta(seconds=1))
    assert receiver.take()
    assert bad.deliveries.waiting().count() == 2


def test_failing_channels_are_served_last(owner: User) -> None:
    bad = make_channel(owner, target="http://127.0.0.1:9/bad")
    put(bad)
    fail(bad, at=NOW)
    good = put(make_channel(owner, target="http://127.0.0.1:9/good"))
    (parcel,) = lease_parcels(limit=1, now=NOW + pause_after(1))
    assert parcel.delivery == good.pk


def test_failed_message_does_not_block_the_next_message_of_its_channel(owner: User) -> None:
    channel = make_channel(owner)
    put(channel, key="silent:1:1")
    fail(channel, at=NOW)
    fresh = put(channel, key="silent:1:2")
    (parcel,) = lease_parcels(limit=MOST, now=NOW + pause_after(1))
    assert parcel.delivery == fresh.pk


def test_channel_has_at_most_one_attempt_in_flight(owner: User) -> None:
    channel = make_channel(owner)
    put(channel, key="silent:1:1")
    put(channel, key="silent:1:2")
    assert len(lease_parcels(limit=MOST, now=NOW)) == 1
    assert lease_parcels(limit=MOST, now=NOW) == []


def test_message_of_a_killed_worker_is_claimed_again_after_the_lease(
    owner: User,
) -> None:
    delivery = put(make_channel(owner))
    lease_parcels(limit=MOST, now=NOW)
    (again,) = lease_parcels(limit=MOST, now=NOW + LEASE)
    assert (again.delivery, again.attempt) == (delivery.pk, 2)


def test_outcome_of_an_expired_claim_is_ignored(owner: User) -> None:
    delivery = put(make_channel(owner))
    (slow,) = lease_parcels(limit=MOST, now=NOW)
    lease_parcels(limit=MOST, now=NOW + LEASE)
    record_outcomes([slow.end(Failure.TIMEOUT)], now=NOW + LEASE)
    delivery.refresh_from_db()
    assert delivery.failure == ""


def test_message_that_cannot_be_composed_fails_without_blocking_others(owner: User) -> None:
    bad = put(make_channel(owner, kind=Channel.Kind.NTFY, target="http://127.0.0.1:9/topic"))
    Delivery.objects.update(data={})
    good = put(make_channel(owner))
    outcomes = {outcome.delivery: outcome.failure for outcome in deliver()}
    assert outcomes == {bad.pk: Failure.INTERNAL, good.pk: Failure.UNREACHABLE}


def test_number_of_claimed_parcels_is_limited(owner: User) -> None:
    for number in range(3):
        put(make_channel(owner, target=f"http://127.0.0.1:9/{number}"))
    assert len(lease_parcels(limit=2, now=NOW)) == 2


def test_disabled_channel_sends_nothing(owner: User) -> None:
    channel = make_channel(owner)
    put(channel)
    switch_off(channel, because=Channel.Off.OWNER, now=NOW)
    assert lease_parcels(limit=MOST, now=NOW) == []


def test_channel_that_is_switched_on_again_has_no_pause(owner: User) -> None:
    channel = make_channel(owner)
    put(channel)
    fail(channel, at=NOW)
    switch_off(channel, because=Channel.Off.OWNER, now=NOW)
    switch_on(channel)
    put(channel, key="silent:1:2")
    assert len(lease_parcels(limit=MOST, now=NOW)) == 1


def test_test_message_is_sent_immediately_and_only_once(owner: User) -> None:
    channel = make_channel(owner)
    put(channel)
    fail(channel, at=NOW)
    send_test(channel, now=NOW)
    (parcel,) = lease_parcels(limit=MOST, now=NOW)
    record_outcomes([parcel.end(Failure.TIMEOUT)], now=NOW)
    tested = Delivery.objects.get(type=Delivery.Type.TEST)
    assert tested.state == Delivery.State.FAILED


def test_test_message_is_sent_before_older_messages(owner: User) -> None:
    channel = make_channel(owner)
    put(channel, at=NOW - timedelta(hours=1))
    send_test(channel, now=NOW)
    (parcel,) = lease_parcels(limit=MOST, now=NOW)
    assert parcel.delivery == Delivery.objects.get(type=Delivery.Type.TEST).pk


def test_message_to_an_address_that_became_forbidden_fails(owner: User, settings: Any) -> None:
    delivery = put(make_channel(owner))
    settings.NOTIFICATION_PRIVATE_TARGETS = False
    deliver()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.failure) == ("waiting", "forbidden")


def test_old_deliveries_are_pruned(owner: User) -> None:
    channel = make_channel(owner)
    put(channel, key="silent:1:1", at=NOW - RETENTION - timedelta(seconds=1))
    recent = put(channel, key="silent:1:2", at=NOW - RETENTION)
    prune_deliveries(now=NOW)
    assert list(Delivery.objects.all()) == [recent]


@pytest.mark.django_db(transaction=True)
def test_concurrent_workers_claim_a_message_once(owner: User) -> None:
    put(make_channel(owner))
    claimed = SimpleQueue[list[Parcel]]()
    start = threading.Barrier(2)

    def claim() -> None:
        start.wait()
        claimed.put(lease_parcels(limit=MOST, now=NOW))
        connection.close()

    workers = [threading.Thread(target=claim) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(len(claimed.get(timeout=5)) for _ in workers) == [0, 1]
