"""Celery tasks of the relay: they call its services and may run repeatedly or concurrently."""

from math import ceil
from time import monotonic

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from swarm_web.core.verifiers import process_verifier
from swarm_web.relay.services.archiving import check_samples, prune_archive, store_samples
from swarm_web.relay.services.conduct import evaluate_conduct
from swarm_web.relay.services.crediting import book_credits
from swarm_web.relay.services.declarations import check_declarations

# The same worker grades answers for the judge, so the rest is left for the next run.
CHECKING_BUDGET_S = 2.0
# How often CELERY_BEAT_SCHEDULE starts check_conduct.
_RUNS_PER_MINUTE = 12
# Rollouts that are taken off the queue together.
_CHECK_BATCH = 8


@shared_task
def keep_archive() -> None:
    """Store sampled rollouts in the archive, book credits in Postgres, and score archived rollouts.

    Samples and credits wait in Redis. Booking and scoring stop after CHECKING_BUDGET_S.
    """
    until = monotonic() + CHECKING_BUDGET_S
    # Samples first: credits can refer to a rollout only after it is archived.
    while store_samples():
        pass
    while book_credits() and monotonic() < until:
        pass
    while check_samples(verifier=process_verifier(), now=timezone.now()):
        if monotonic() > until:
            return


@shared_task
def check_conduct() -> None:
    """Check rollouts that web processes queued, and evaluate the conduct of nodes."""
    _check_rollouts()
    evaluate_conduct(now=timezone.now())


def _check_rollouts() -> None:
    until = monotonic() + CHECKING_BUDGET_S
    # Declared rollouts are queued of two groups of nodes (`SeasonPool.choose_checks`).
    checks = 2 * settings.RELAY_DECLARED_CHECKS_PER_MINUTE + settings.RELAY_SPOT_CHECKS_PER_MINUTE
    remaining = ceil(checks / _RUNS_PER_MINUTE)
    while remaining > 0 and monotonic() < until:
        limit = min(remaining, _CHECK_BATCH)
        checked = check_declarations(
            verifier=process_verifier(),
            now=timezone.now(),
            limit=limit,
            is_late=lambda: monotonic() > until,
        )
        if not checked:
            return
        remaining -= limit


@shared_task
def prune() -> None:
    """Delete expired archived rollouts, exchanges, training points and `CreditSource` rows."""
    prune_archive(now=timezone.now())
