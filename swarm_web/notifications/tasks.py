"""Celery's entry to the notifications: thin, idempotent, safe to run twice or at once."""

from datetime import timedelta
from time import monotonic

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from swarm_web.notifications.courier import process_courier
from swarm_web.notifications.rules import silent_before
from swarm_web.notifications.services.delivering import book, claim_parcels, prune_deliveries
from swarm_web.notifications.services.noticing import notice_returns, notice_silences
from swarm_web.notifications.services.noticing_clients import notice_minimum
from swarm_web.notifications.services.noticing_rounds import notice_rounds
from swarm_web.notifications.services.watching import look

# Rounds tick in the same worker: what is left is for the next run.
NOTICING_S = 1.0
# Most receivers answer within this; the others' answers are booked by the next run.
WAITING_S = 0.5


@shared_task
def notice() -> None:
    """Find what owners are to be told of."""
    until = monotonic() + NOTICING_S
    now = timezone.now()
    patience = timedelta(minutes=settings.NOTIFICATION_SILENCE_MINUTES)
    before = silent_before(look(now=now), now=now, patience=patience)
    while before and notice_silences(before=before, now=now) and monotonic() < until:
        pass
    for find in (notice_returns, notice_minimum, notice_rounds):
        while find(now=now) and monotonic() < until:
            pass


@shared_task
def deliver() -> None:
    """Book what was sent, and let the courier's threads send what is due."""
    courier = process_courier()
    book(courier.collect(), now=timezone.now())
    courier.take(claim_parcels(most=courier.room(), now=timezone.now()))
    until = monotonic() + WAITING_S
    while outcomes := courier.collect(wait_s=max(0.0, until - monotonic())):
        book(outcomes, now=timezone.now())


@shared_task
def prune() -> None:
    """Forget old deliveries."""
    prune_deliveries(now=timezone.now())
