"""Evaluate evidence about nodes, and publish their hand-out weights to the web processes.

Web processes count what they refused (`services.folding`), and the worker what it checked. Each
function may run twice or at once: a node's row is locked while it is evaluated.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from swarm_web.core.store import sync_redis
from swarm_web.relay.claims import tell_weights
from swarm_web.relay.conduct import (
    CHECKS,
    WINDOW,
    Cells,
    Checked,
    Checks,
    Finding,
    Hold,
    Level,
    Sent,
    ease,
    judge_checks,
    judge_sent,
    lower,
)
from swarm_web.relay.models import Conduct, Contribution

logger = logging.getLogger(__name__)

_LOOKED_AT_ONCE = 200
# The fields that an evaluation changes. Web processes change the counters concurrently.
_LOOKED = (
    *("pending", "sent_window", "check_window", "level", "charge", "bad", "total", "allowed"),
    *("findings", "since", "until"),
)


def note_checks(found: Mapping[int, Sequence[Checked]], *, season_id: int, now: datetime) -> None:
    """Count spot checks of nodes, by id, and mark the nodes for evaluation.

    Deleted nodes are skipped.
    """
    known = Contribution.objects.filter(node__in=found, season=season_id)
    for node_id in known.values_list("node_id", flat=True):
        with transaction.atomic():
            row = _lock(node_id, season_id)
            since = row.check_window.get("since", now.isoformat())
            checks = _checks(row)
            for checked in found[node_id]:
                checks = checks.add(checked)
                row.checked += 1
                row.worthless += checked.worthless
            row.check_window = {
                "since": since,
                "worthless": checks.worthless,
                "declared": checks.declared,
                "misdeclared": checks.misdeclared,
                "cells": checks.cells,
            }
            row.pending = True
            row.save(update_fields=["check_window", "checked", "worthless", "pending"])


def keep_conduct(*, now: datetime) -> int:
    """Evaluate new evidence about nodes of the running season; return the number of nodes.

    Only nodes with new evidence, or whose level is due to rise, are evaluated. All weights are
    published each time, because Redis may have lost them, or a worker may have crashed before
    publishing.
    """
    rows = Conduct.objects.filter(season__state="running", pinned=False)
    due = rows.filter(Q(pending=True) | Q(until__lte=now)).order_by("pk")
    looked_at = list(due.values_list("pk", flat=True)[:_LOOKED_AT_ONCE])
    for pk in looked_at:
        _look(pk, now=now)
    running = Contribution.objects.filter(season__state="running")
    season_id = running.values_list("season_id", flat=True).first()
    if season_id is not None:
        tell_weights(sync_redis(), season_id, _weights(season_id))
    return len(looked_at)


def set_by_operator(
    parts: QuerySet[Contribution], *, level: Level, pinned: bool, now: datetime
) -> int:
    """Set the level of nodes; return the number of nodes.

    A pinned level stays until an operator changes it; otherwise the rules continue from the new
    level, without earlier findings.
    """
    pairs = list(parts.values_list("node_id", "season_id"))
    for node_id, season_id in pairs:
        with transaction.atomic():
            row = _lock(node_id, season_id)
            _begin_anew(row, now=now)
            row.level, row.pinned = level.value, pinned
            row.charge = Conduct.Charge.OPERATOR if pinned or level is not Level.FULL else ""
            row.since, row.until = now, None
            row.bad = row.total = row.findings = 0
            row.pending = False
            row.save()
        logger.info("an operator set node %s to %s, pinned: %s", node_id, level, pinned)
    return len(pairs)


def _lock(node_id: int, season_id: int) -> Conduct:
    """Return a node's row, created if missing, and locked."""
    Conduct.objects.get_or_create(node_id=node_id, season_id=season_id)
    return Conduct.objects.select_for_update().get(node=node_id, season=season_id)


def _look(pk: int, *, now: datetime) -> None:
    """Evaluate the evidence about one node, unless another worker is doing so."""
    with transaction.atomic():
        rows = Conduct.objects.select_for_update(skip_locked=True).filter(pk=pk, pinned=False)
        row = rows.first()
        if row is None:
            return
        before = row.hold
        finding = judge_sent(_sent(row, now=now)) or judge_checks(_checks(row), judged=_judged(row))
        after = lower(before, now=now) if finding else ease(before, now=now)
        if finding:
            _charge(row, finding, now=now)
        _begin_windows(row, now=now)
        _set(row, after, now=now)
        row.pending = False
        row.save(update_fields=_LOOKED)
    if finding or after.level != before.level:
        logger.info("node %s: %s, now %s", row.node_id, finding, after)


def _charge(row: Conduct, finding: Finding, *, now: datetime) -> None:
    """Record a finding; its evidence is not counted again."""
    row.charge, row.bad, row.total = finding.charge.value, finding.bad, finding.total
    row.allowed = finding.allowed
    _begin_anew(row, now=now)


def _begin_anew(row: Conduct, *, now: datetime) -> None:
    """Begin new windows; earlier counts no longer matter."""
    row.sent_window, row.check_window = {"since": now.isoformat(), **_totals(row)}, {}


def _set(row: Conduct, hold: Hold, *, now: datetime) -> None:
    if hold.level != row.level:
        row.since = now
    row.level, row.findings, row.until = hold.level.value, hold.findings, hold.until


def _totals(row: Conduct) -> dict[str, int]:
    parts = Contribution.objects.filter(node=row.node_id, season=row.season_id)
    return {
        "published": parts.values_list("published", flat=True).first() or 0,
        "refused": row.refused,
        "copies": row.copies,
        "hurried": row.hurried,
        "floods": row.floods,
    }


def _sent(row: Conduct, *, now: datetime) -> Sent:
    """Return what the node sent since its window began; at the first evaluation, in the season."""
    totals, began = _totals(row), row.sent_window
    if began and now - datetime.fromisoformat(began["since"]) > WINDOW:
        # Counts since the last evaluation may be older than the window, so they are ignored.
        return Sent()
    return Sent(**{name: count - began.get(name, 0) for name, count in totals.items()})


def _begin_windows(row: Conduct, *, now: datetime) -> None:
    """Begin a window if there is none, or the last one has ended."""
    began = row.sent_window
    if not began or now - datetime.fromisoformat(began["since"]) > WINDOW:
        row.sent_window = {"since": now.isoformat(), **_totals(row)}
    if _checks(row).total >= CHECKS:
        row.check_window = {}


def _checks(row: Conduct) -> Checks:
    window = row.check_window
    if not window:
        return Checks()
    return Checks(
        worthless=window["worthless"],
        declared=window.get("declared", 0),
        misdeclared=window.get("misdeclared", 0),
        cells={name: (right, n) for name, (right, n) in window["cells"].items()},
    )


def _judged(row: Conduct) -> Cells:
    """Return what the node solved in rounds that opened since its window of checks began."""
    if not row.check_window:
        return {}
    scores = row.node.scores.filter(
        round__season=row.season_id,
        round__opens_at__gte=datetime.fromisoformat(row.check_window["since"]),
        round__void_reason="",
        status="scored",
    )
    cells: dict[str, tuple[int, int]] = {}
    for judged in scores.values_list("cells", flat=True):
        for dataset, (solved, n) in judged.items():
            before = cells.get(dataset, (0, 0))
            cells[dataset] = (before[0] + solved, before[1] + n)
    return cells


def _weights(season_id: int) -> dict[int, float]:
    held = Conduct.objects.filter(season=season_id).exclude(level=Level.FULL)
    return {node: Level(level).weight for node, level in held.values_list("node_id", "level")}
