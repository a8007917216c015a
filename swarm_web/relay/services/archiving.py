"""Fills, checks and prunes the archive.

Each function may run repeatedly or concurrently, and continues what a crash left undone. A sample
taken by a worker that crashes is lost, which is acceptable for rollouts.
"""

import logging
from datetime import UTC, datetime, timedelta

import msgspec
from django.conf import settings
from django.db import transaction

from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.answers import find_rules
from swarm_tasks.pool import AnyVerifier
from swarm_web.core.store import sync_redis
from swarm_web.nodes.models import Node
from swarm_web.relay.intake import ArchiveSample, take_samples
from swarm_web.relay.models import ArchivedRollout, CreditSource, Exchange, TrainingPoint
from swarm_web.relay.services.crediting import withdraw_credits
from swarm_web.relay.services.scoring import score_completions

logger = logging.getLogger(__name__)

_STORE_BATCH = 100
# Few, because each may hold a completion that hangs until its deadline.
_CHECK_BATCH = 8
_PRUNE_BATCH = 1000
_SOURCE_RETENTION = timedelta(days=7)


def store_samples() -> int:
    """Move up to _STORE_BATCH waiting samples from Redis to the archive.

    Returns how many readable samples were taken. This includes samples that are dropped because
    their node has been deleted or the archive already has the rollout.
    """
    samples = take_samples(sync_redis(), limit=_STORE_BATCH)
    # A node may have been deleted since; a season with rollouts cannot be.
    existing = set(
        Node.objects.filter(pk__in={sample.node_id for sample in samples}).values_list(
            "pk", flat=True
        )
    )
    ArchivedRollout.objects.bulk_create(
        [_to_row(sample) for sample in samples if sample.node_id in existing],
        ignore_conflicts=True,  # a node republishes rollouts that were not acknowledged
    )
    return len(samples)


def check_samples(*, verifier: AnyVerifier, now: datetime) -> int:
    """Check up to _CHECK_BATCH unchecked archived rollouts, oldest first; return how many.

    The rollouts stay locked until their verdicts are committed; other workers skip them. Credits
    for rollouts that the check refutes are withdrawn.
    """
    with transaction.atomic():
        waiting = ArchivedRollout.objects.waiting().select_for_update(skip_locked=True)
        rows = list(waiting.order_by("published_at")[:_CHECK_BATCH])
        for row in rows:
            _check(row, verifier=verifier)
            row.checked_at = now
        ArchivedRollout.objects.bulk_update(
            rows, ["question", "completions", "solved", "failure", "checked_at"]
        )
        withdraw_credits(row for row in rows if row.is_refuted)
    return len(rows)


def prune_archive(*, now: datetime) -> None:
    """Delete rollouts, exchanges and training points older than RELAY_ARCHIVE_DAYS.

    Also deletes old `CreditSource` rows. A `CreditSource` is a web process that sends batches of
    credits. Its row is needed only while one of its booked batches may still be in Redis. A row is
    old if its last batch was booked more than _SOURCE_RETENTION ago.
    """
    cutoff = now - timedelta(days=settings.RELAY_ARCHIVE_DAYS)
    old = ArchivedRollout.objects.filter(published_at__lt=cutoff).order_by("published_at")
    while keys := list(old.values_list("pk", flat=True)[:_PRUNE_BATCH]):
        ArchivedRollout.objects.filter(pk__in=keys).delete()
    Exchange.objects.filter(hour__lt=cutoff).delete()
    TrainingPoint.objects.filter(at__lt=cutoff).delete()
    CreditSource.objects.filter(booked_at__lt=now - _SOURCE_RETENTION).delete()


def _to_row(sample: ArchiveSample) -> ArchivedRollout:
    rollout = sample.rollout
    return ArchivedRollout(
        season_id=sample.season_id,
        author_id=sample.node_id,
        rollout=rollout.id,
        dataset=rollout.task.dataset,
        spec=msgspec.to_builtins(rollout.task),
        model=rollout.model,
        step=rollout.step,
        completions=[
            {
                "text": completion.text,
                "finish_reason": completion.finish_reason,
                "score": None,
                "solved": None,
                "verdict": None,
            }
            for completion in rollout.completions
        ],
        published_at=datetime.fromtimestamp(sample.at, tz=UTC),
        total=len(rollout.completions),
    )


def _check(row: ArchivedRollout, *, verifier: AnyVerifier) -> None:
    """Set the row's question and verdicts, or its `failure`; the caller saves the row."""
    try:
        question, verdicts = score_completions(
            msgspec.convert(row.spec, TaskSpec),
            [completion["text"] for completion in row.completions],
            rules=find_rules(row.season.answer_rules),
            verifier=verifier,
        )
    except RefusedError as refusal:
        logger.warning("archived %s cannot be checked: %s", row.dataset, refusal.message)
        row.failure = refusal.code
        return
    row.question = question
    row.solved = sum(verdict.solved for verdict in verdicts)
    for completion, verdict in zip(row.completions, verdicts, strict=True):
        completion |= {
            "score": verdict.score,
            "solved": verdict.solved,
            "verdict": verdict.reason,
        }
