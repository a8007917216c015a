"""Celery tasks for notifications. Each is safe to run twice or concurrently."""

from datetime import timedelta
from time import monotonic

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from swarm_web.notifications.courier import process_courier
from swarm_web.notifications.rules import silent_before
from swarm_web.notifications.services.delivering import (
    lease_parcels,
    prune_deliveries,
    record_outcomes,
)
from swarm_web.notifications.services.noticing import notice_returns, notice_silences, update_watch
from swarm_web.notifications.services.noticing_clients import notice_minimum
from swarm_web.notifications.services.noticing_rounds import notice_rounds

# The worker also moves rounds on, so a run stops after this time and the next run does the rest.
NOTICING_BUDGET_S = 1.0
# A run waits this long for outcomes; the next run records later ones.
COLLECT_TIMEOUT_S = 0.5


@shared_task
def notice() -> None:
    """Find events for owners and queue messages about them, until no event is left.

    After NOTICING_BUDGET_S seconds, each kind of event gets at most one more batch. The next run
    handles the rest.
    """
    until = monotonic() + NOTICING_BUDGET_S
    now = timezone.now()
    threshold = timedelta(minutes=settings.NOTIFICATION_SILENCE_MINUTES)
    before = silent_before(update_watch(now=now), now=now, threshold=threshold)
    while before and notice_silences(before=before, now=now) and monotonic() < until:
        pass
    for find in (notice_returns, notice_minimum, notice_rounds):
        while find(now=now) and monotonic() < until:
            pass


@shared_task
def deliver() -> None:
    """Pass due messages to the courier's threads, and record the outcomes of sent messages.

    Outcomes that arrive too late for this run are recorded by the next one.
    """
    courier = process_courier()
    record_outcomes(courier.collect(), now=timezone.now())
    courier.take(lease_parcels(limit=courier.capacity(), now=timezone.now()))
    until = monotonic() + COLLECT_TIMEOUT_S
    while outcomes := courier.collect(wait_s=max(0.0, until - monotonic())):
        record_outcomes(outcomes, now=timezone.now())


@shared_task
def prune() -> None:
    """Delete deliveries older than the retention period, except those about client versions."""
    prune_deliveries(now=timezone.now())
