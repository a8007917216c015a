"""The outbox: leases due messages, which a courier's threads send, and records the outcomes.

A lease is on a channel: it postpones the channel's next attempt by LEASE, so that no other worker
sends the message at the same time. `send_test` and `switch_on` can end the lease early. If a worker
dies, its messages are sent again when the lease ends, with the same ids.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Case, F, Q, When

from swarm_web.notifications.models import Channel, Delivery, Failure
from swarm_web.notifications.parcels import DeliveryOutcome, Parcel, pack
from swarm_web.notifications.rules import MAX_ATTEMPTS, pause_after, should_give_up
from swarm_web.notifications.services.channels import switch_off

# Longer than a courier needs for all its parcels if every receiver hangs.
LEASE = timedelta(minutes=5)
RETENTION = timedelta(days=30)
_PRUNE_BATCH = 1000
_NEW_TESTS_FIRST = Case(When(type=Delivery.Type.TEST, attempts=0, then=0), default=1)
# Fields of a channel that an attempt changes.
_CHANGED_FIELDS = ["failures", "failing_since", "failed_at", "failure", "next_attempt_at"]


def lease_parcels(*, limit: int, now: datetime) -> list[Parcel]:
    """Lease up to `limit` channels with due messages, and return one message of each as a parcel.

    While a channel is leased, no other call returns a message of this channel. The lease ends after
    LEASE. It ends earlier when the outcome of this attempt is recorded, or when `send_test` or
    `switch_on` ends it. Each delivery's `attempts` is increased by one.
    """
    with transaction.atomic():
        due = Channel.objects.filter(
            Q(next_attempt_at=None) | Q(next_attempt_at__lte=now),
            enabled=True,
            pk__in=Delivery.objects.waiting().values("channel"),
        )
        locked = due.select_for_update(skip_locked=True, no_key=True)
        # Failing channels come last, because dead addresses could block all threads.
        channels = list(locked.order_by("failures", "pk")[:limit])
        Channel.objects.filter(pk__in=[channel.pk for channel in channels]).update(
            next_attempt_at=now + LEASE
        )
        # By attempts: a message that a receiver refuses must not block others. New tests come
        # first, because their owner waits for the result.
        deliveries = list(
            Delivery.objects.waiting()
            .filter(channel__in=channels)
            .order_by("channel_id", _NEW_TESTS_FIRST, "attempts", "created_at")
            .distinct("channel_id")
            .select_related("channel__owner")
        )
        keys = [delivery.pk for delivery in deliveries]
        Delivery.objects.filter(pk__in=keys).update(attempts=F("attempts") + 1)
    for delivery in deliveries:
        delivery.attempts += 1
    return [pack(delivery, now=now) for delivery in deliveries]


def record_outcomes(outcomes: Iterable[DeliveryOutcome], *, now: datetime) -> None:
    """Record outcomes. Switch off channels whose receiver is gone or has failed for too long.

    After a failure, a message is sent again after a pause, unless MAX_ATTEMPTS attempts were
    started; a test message is not sent again. An outcome is ignored if its message is no longer
    waiting, or if a later attempt to send the message has begun.
    """
    ended = {outcome.delivery: outcome for outcome in outcomes}
    if not ended:
        return
    with transaction.atomic():
        # Channels first: leases lock in the same order.
        locked = Channel.objects.filter(deliveries__in=ended).order_by("pk")
        channels = {row.pk: row for row in locked.select_for_update(no_key=True, of=("self",))}
        deliveries = [
            delivery
            for delivery in Delivery.objects.waiting().filter(pk__in=ended)
            if delivery.attempts == ended[delivery.pk].attempt
        ]
        for delivery in deliveries:
            _record_on_delivery(delivery, ended[delivery.pk], now=now)
            _record_on_channel(channels[delivery.channel_id], ended[delivery.pk], now=now)
        Delivery.objects.bulk_update(deliveries, ["failure", "status", "state", "ended_at"])
        Channel.objects.bulk_update(channels.values(), _CHANGED_FIELDS)
        for channel in channels.values():
            _give_up(channel, now=now)


def _record_on_delivery(delivery: Delivery, outcome: DeliveryOutcome, *, now: datetime) -> None:
    delivery.failure, delivery.status = outcome.failure, outcome.status
    # A test is sent once: its owner sees the result.
    limit = 1 if delivery.type == Delivery.Type.TEST else MAX_ATTEMPTS
    if not outcome.failure:
        delivery.state, delivery.ended_at = Delivery.State.SENT, now
    elif delivery.attempts >= limit:
        delivery.state, delivery.ended_at = Delivery.State.FAILED, now


def _record_on_channel(channel: Channel, outcome: DeliveryOutcome, *, now: datetime) -> None:
    if not outcome.failure:
        channel.failures, channel.failing_since, channel.next_attempt_at = 0, None, None
        return
    channel.failures += 1
    channel.failing_since = channel.failing_since or now
    channel.failed_at, channel.failure = now, outcome.failure
    channel.next_attempt_at = now + pause_after(channel.failures)


def _give_up(channel: Channel, *, now: datetime) -> None:
    """Switch the channel off if its receiver is gone or has failed for too long."""
    if channel.failing_since is None:
        return
    if channel.failure == Failure.GONE:
        switch_off(channel, because=Channel.Off.GONE, now=now)
    elif should_give_up(failures=channel.failures, failing_since=channel.failing_since, now=now):
        switch_off(channel, because=Channel.Off.FAILING, now=now)


def prune_deliveries(*, now: datetime) -> None:
    """Delete messages older than RETENTION.

    Messages about client versions are kept: they prevent a second message about the same version.
    """
    old = Delivery.objects.filter(created_at__lt=now - RETENTION).exclude(
        type=Delivery.Type.CLIENT_REQUIRED
    )
    while keys := list(old.order_by("created_at").values_list("pk", flat=True)[:_PRUNE_BATCH]):
        Delivery.objects.filter(pk__in=keys).delete()
