"""Evaluates evidence about nodes, and publishes their hand-out weights to the web processes.

The evidence is what web processes refused (`services.folding`) and what a worker's spot checks
found. Each function may run repeatedly or concurrently: a node's row is locked while it is
evaluated.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

import msgspec
from django.db import transaction
from django.db.models import Q, QuerySet

from swarm_web.core.store import sync_redis
from swarm_web.relay.check_queue import set_weights
from swarm_web.relay.conduct import (
    CHECKS_PER_WINDOW,
    WINDOW,
    Cells,
    Checked,
    Checks,
    Level,
    Sent,
    evaluate_checks,
    evaluate_sent,
    lower,
    recover,
)
from swarm_web.relay.models import Conduct, Contribution

logger = logging.getLogger(__name__)

_EVALUATION_BATCH = 200
# The fields that an evaluation changes. Web processes change the counters concurrently.
_EVALUATED_FIELDS = (
    *("pending", "sent_window", "check_window", "level", "charge", "bad", "total", "allowed"),
    *("findings", "since", "until"),
)


def record_checks(found: Mapping[int, Sequence[Checked]], *, season_id: int, now: datetime) -> None:
    """Add spot checks to their nodes' evidence, and mark the nodes for evaluation.

    `found` has the checks of each node, by node id. Nodes without a contribution to the season,
    such as deleted ones, are skipped.
    """
    contributions = Contribution.objects.filter(node__in=found, season=season_id)
    for node_id in contributions.values_list("node_id", flat=True):
        with transaction.atomic():
            row = _lock(node_id, season_id)
            since = row.check_window.get("since", now.isoformat())
            checks = _read_checks(row)
            for checked in found[node_id]:
                checks = checks.add(checked)
                row.checked += 1
                row.worthless += checked.worthless
            row.check_window = {"since": since, **asdict(checks)}
            row.pending = True
            row.save(update_fields=["check_window", "checked", "worthless", "pending"])


def evaluate_conduct(*, now: datetime) -> int:
    """Evaluate up to _EVALUATION_BATCH nodes of the running season. Return how many were chosen.

    These are nodes with new evidence, and nodes whose hand-out weight is due to rise. Nodes whose
    level an operator has pinned are left out.

    Afterwards all weights of the season are written to Redis, even if none has changed: Redis may
    have lost them, or a worker may have crashed before it wrote them.
    """
    rows = Conduct.objects.filter(season__state="running", pinned=False)
    due = rows.filter(Q(pending=True) | Q(until__lte=now)).order_by("pk")
    evaluated = list(due.values_list("pk", flat=True)[:_EVALUATION_BATCH])
    for pk in evaluated:
        _evaluate(pk, now=now)
    running = Contribution.objects.filter(season__state="running")
    season_id = running.values_list("season_id", flat=True).first()
    if season_id is not None:
        set_weights(sync_redis(), season_id, _read_weights(season_id))
    return len(evaluated)


def set_level(
    contributions: QuerySet[Contribution], *, level: Level, pinned: bool, now: datetime
) -> int:
    """Set the nodes' levels in the contributions' seasons; return how many levels were set.

    The nodes' findings and windows are reset. A pinned level stays until an operator changes it. If
    the level is not pinned, the rules continue from it.
    """
    pairs = list(contributions.values_list("node_id", "season_id"))
    for node_id, season_id in pairs:
        with transaction.atomic():
            row = _lock(node_id, season_id)
            _reset_windows(row, now=now)
            row.level, row.pinned = level.value, pinned
            row.charge = Conduct.Charge.OPERATOR if pinned or level is not Level.FULL else ""
            row.since, row.until = now, None
            row.bad = row.total = row.findings = 0
            row.pending = False
            row.save()
        logger.info("an operator set node %s to %s, pinned: %s", node_id, level, pinned)
    return len(pairs)


def _lock(node_id: int, season_id: int) -> Conduct:
    """Return a node's conduct row in a season, locked; create it if missing.

    Call in a transaction.
    """
    Conduct.objects.get_or_create(node_id=node_id, season_id=season_id)
    return Conduct.objects.select_for_update().get(node=node_id, season=season_id)


def _evaluate(pk: int, *, now: datetime) -> None:
    """Evaluate the evidence in a conduct row, and store the node's new level in the row.

    Does nothing if the row is locked or its level is pinned.
    """
    with transaction.atomic():
        rows = Conduct.objects.select_for_update(skip_locked=True).filter(pk=pk, pinned=False)
        row = rows.first()
        if row is None:
            return
        before = row.hold
        finding = evaluate_sent(_read_sent(row, now=now)) or evaluate_checks(
            _read_checks(row), judge_cells=_read_judge_cells(row)
        )
        after = lower(before, now=now) if finding else recover(before, now=now)
        if finding:
            row.charge, row.bad, row.total = finding.charge.value, finding.bad, finding.total
            row.allowed = finding.allowed
            # So that the evidence is not counted again.
            _reset_windows(row, now=now)
        else:
            _begin_windows(row, now=now)
        if after.level != before.level:
            row.since = now
        row.level, row.findings, row.until = after.level.value, after.findings, after.until
        row.pending = False
        row.save(update_fields=_EVALUATED_FIELDS)
    if finding or after.level != before.level:
        logger.info("node %s: %s, now %s", row.node_id, finding, after)


def _reset_windows(row: Conduct, *, now: datetime) -> None:
    """Begin a window of messages in the row, and clear the window of checks.

    So earlier counts no longer matter. The row is not saved.
    """
    row.sent_window, row.check_window = {"since": now.isoformat(), **_read_totals(row)}, {}


def _read_totals(row: Conduct) -> dict[str, int]:
    contributions = Contribution.objects.filter(node=row.node_id, season=row.season_id)
    return {
        "published": contributions.values_list("published", flat=True).first() or 0,
        "refused": row.refused,
        "copies": row.copies,
        "hurried": row.hurried,
        "floods": row.floods,
    }


def _read_sent(row: Conduct, *, now: datetime) -> Sent:
    """Return what the node sent since its window of messages began.

    If no window has begun, the counts are those of the season. If the window has ended, that is,
    began more than WINDOW ago, all counts are 0.
    """
    totals, began = _read_totals(row), row.sent_window
    if began and now - datetime.fromisoformat(began["since"]) > WINDOW:
        # Counts since the last evaluation may be older than the window, so they are ignored.
        return Sent()
    return Sent(**{name: count - began.get(name, 0) for name, count in totals.items()})


def _begin_windows(row: Conduct, *, now: datetime) -> None:
    """Begin a window of messages in the row if none is open, and clear a full window of checks.

    A window of messages is open for WINDOW. The next check begins a new window of checks. The row
    is not saved.
    """
    began = row.sent_window
    if not began or now - datetime.fromisoformat(began["since"]) > WINDOW:
        row.sent_window = {"since": now.isoformat(), **_read_totals(row)}
    if _read_checks(row).total >= CHECKS_PER_WINDOW:
        row.check_window = {}


def _read_checks(row: Conduct) -> Checks:
    return msgspec.convert(row.check_window, Checks)


def _read_judge_cells(row: Conduct) -> Cells:
    """Return the node's (solved, n) by dataset in rounds that opened in its window of checks.

    Void rounds and rounds without a score do not count. Empty if no window has begun.
    """
    if not row.check_window:
        return {}
    scores = row.node.scores.filter(
        round__season=row.season_id,
        round__opens_at__gte=datetime.fromisoformat(row.check_window["since"]),
        round__void_reason="",
        status="scored",
    )
    cells: dict[str, tuple[int, int]] = {}
    for scored_cells in scores.values_list("cells", flat=True):
        for dataset, (solved, n) in scored_cells.items():
            before = cells.get(dataset, (0, 0))
            cells[dataset] = (before[0] + solved, before[1] + n)
    return cells


def _read_weights(season_id: int) -> dict[int, float]:
    held = Conduct.objects.filter(season=season_id).exclude(level=Level.FULL)
    return {node: Level(level).weight for node, level in held.values_list("node_id", "level")}
