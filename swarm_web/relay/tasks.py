"""Celery's entry to the relay: thin, idempotent, safe to run twice or at once."""

from time import monotonic

from celery import shared_task
from django.utils import timezone

from swarm_web.relay.services import book_credits, check_samples, prune_archive, store_samples
from swarm_web.verifiers import process_verifier

# Answers to the judge wait for the same worker: what is left is for the next run.
CHECKING_S = 2.0


@shared_task
def keep_archive() -> None:
    """Store the rollouts that were sampled, book credits for them, and check those that wait."""
    until = monotonic() + CHECKING_S
    # Samples first: who learned from a rollout can be noted once it is archived.
    while store_samples():
        pass
    while book_credits() and monotonic() < until:
        pass
    while check_samples(verifier=process_verifier(), now=timezone.now()):
        if monotonic() > until:
            return


@shared_task
def prune() -> None:
    """Forget what the archive has kept long enough."""
    prune_archive(now=timezone.now())
