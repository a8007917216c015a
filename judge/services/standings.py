"""Services that update ledgers and standings, so that no page has to add up answers.

A refresh finds the rounds that entered or left each window since the last refresh. It adds rounds
that entered to the season's ledgers, subtracts rounds that left, and rewrites the standings of the
windows that changed. It reads the ledgers and the scores of the changed rounds, never answers. Its
cost grows with the size of a round and the number of nodes, but only slowly with the length of the
season: after its first rounds, each round adds four bytes to a node's ledger
(`swarm_record.stream`), so a year of hourly rounds takes 35 kB.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
import numpy as np
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, TextField
from django.db.models.functions import Cast

from judge.engine import Phase
from judge.models import Counted, Ledger, Question, Round, Score, Season, Standing, Window
from swarm_record.board_rows import Minimum, StandingRow, build_rows, sort_rows
from swarm_record.ledgers import MISSED, NodeLedger, RoundEntry, SeasonLedgers, WindowTally
from swarm_record.ranking import ResultMatrix
from swarm_record.stream import QUESTIONS, allocate_columns, pack, stack_scores, unpack
from swarm_tasks.cells import Cells
from swarm_web.core import bus
from swarm_web.core.bulk import copy_rows
from swarm_web.nodes.models import Node

# msgspec decodes text about ten times as fast as Django decodes JSON columns.
_decode_tallies = msgspec.json.Decoder(dict[str, WindowTally]).decode
_decode_cells = msgspec.json.Decoder(Cells).decode
_SPANS = {Window.DAY: timedelta(hours=24), Window.WEEK: timedelta(days=7)}
_LEDGER_COLUMNS = (
    *("season_id", "node_id", "model", "arm", "tallies", "deviations", "deviation_rounds"),
    *("answered", "solved", "scores"),
)
_STANDING_COLUMNS = (
    *("season_id", "window", "node_id", "model", "arm", "remark", "place", "rank_low"),
    *("rank_high", "score", "interval_low", "interval_high", "correct", "n", "rounds", "missed"),
    "cells",
)


def refresh_standings(
    season: Season, *, now: datetime, excluding: Collection[int] = frozenset()
) -> bool:
    """Bring a season's ledgers and standings up to date; return whether a window has changed.

    `excluding` are primary keys of rounds that this refresh leaves out of every window.
    """
    with transaction.atomic():
        lock_standings(season)
        changes = _find_changes(season, now=now, excluding=excluding)
        if not changes:
            return False
        end = _place_in_stream(season, _new_rounds(changes))
        ledgers = _load_ledgers(season, end=end)
        _apply_changes(ledgers, changes)
        _save_ledgers(season, ledgers)
        for window in changes:
            _write_standings(season, window, ledgers)
        bus.ring(bus.VIEWERS)
    return True


def rebuild_standings(season: Season) -> None:
    """Rewrite all windows' standings after the operator has changed who is ranked."""
    with transaction.atomic():
        lock_standings(season)
        ledgers = _load_ledgers(season, end=_stream_end(season))
        for window in Window:
            _write_standings(season, window, ledgers)
        bus.ring(bus.VIEWERS)


def lock_standings(season: Season) -> None:
    """Take the lock on a season's standings; it is held until the transaction ends.

    A transaction that also locks a round must take this lock first, as `refresh_standings` does: in
    the opposite order, two transactions could deadlock.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.standings'), %s)", [season.pk])


# ---- which rounds each window counts


@dataclass(frozen=True)
class WindowChange:
    """The rounds that enter a leaderboard's window, and those that leave it."""

    entering: list[Round]
    leaving: list[Round]


Changes = Mapping[Window, WindowChange]


def _find_changes(season: Season, *, now: datetime, excluding: Collection[int]) -> Changes:
    """Return the rounds to add to and subtract from each window; unchanged windows are left out.

    `excluding` are primary keys of rounds that no window is to count.
    """
    changes = {}
    for window in Window:
        current = _rounds_in(season, window, now=now).exclude(pk__in=excluding)
        counted = Round.objects.filter(
            Exists(Counted.objects.filter(round=OuterRef("pk"), window=window)), season=season
        )
        entering = list(current.exclude(pk__in=counted.values("pk")).order_by("number"))
        leaving = list(counted.exclude(pk__in=current.values("pk")).order_by("number"))
        if entering or leaving:
            changes[window] = WindowChange(entering, leaving)
    return changes


def _rounds_in(season: Season, window: Window, *, now: datetime) -> QuerySet[Round]:
    """Return the rounds that belong to a window now."""
    closed = Round.objects.filter(season=season, phase=Phase.CLOSED)
    if window in _SPANS:
        return closed.filter(closed_at__gt=now - _SPANS[window])
    if window == Window.SEASON:
        return closed
    latest = closed.order_by("-number").values_list("pk", flat=True)
    count = 1 if window == Window.ROUND else season.recent_rounds
    return closed.filter(pk__in=list(latest[:count]))


def _new_rounds(changes: Changes) -> list[Round]:
    """Return the rounds to write into the season's stream: those that enter the season's window."""
    return changes[Window.SEASON].entering if Window.SEASON in changes else []


def _place_in_stream(season: Season, rounds: Iterable[Round]) -> int:
    """Give rounds without a place in the season's stream the next places; return the stream's end.

    A round's place is its first column in the stream (`swarm_record.stream`), saved as `stream_at`.
    The end is the stream's number of columns.
    """
    end = _stream_end(season)
    for judge_round in rounds:
        if judge_round.stream_at is None:
            judge_round.stream_at, end = allocate_columns(end, judge_round.questions.count())
            judge_round.save(update_fields=["stream_at"])
    return end


def _stream_end(season: Season) -> int:
    last = season.rounds.filter(stream_at__isnull=False).order_by("-stream_at").first()
    if last is None or last.stream_at is None:
        return 0
    return last.stream_at + (1 if last.stream_at >= QUESTIONS else last.questions.count())


# ---- ledgers


def _load_ledgers(season: Season, *, end: int) -> SeasonLedgers:
    """Return all ledgers of a season; `end` is the number of columns in the season's stream."""
    stored = Ledger.objects.filter(season=season).annotate(text=Cast("tallies", TextField()))
    rows = list(
        stored.order_by("pk").values_list(
            *("node_id", "model", "arm", "text", "deviations", "deviation_rounds"),
            *("answered", "solved", "scores"),
        )
    )
    nodes = [
        NodeLedger(node_id, row, model, arm, _decode_tallies(text), deviations, rounds)
        for row, (node_id, model, arm, text, deviations, rounds, *_) in enumerate(rows)
    ]
    return SeasonLedgers(
        nodes,
        answered=unpack([bytes(row[-3]) for row in rows], QUESTIONS),
        solved=unpack([bytes(row[-2]) for row in rows], QUESTIONS),
        scores=stack_scores([bytes(row[-1]) for row in rows], max(0, end - QUESTIONS)),
    )


def _apply_changes(ledgers: SeasonLedgers, changes: Changes) -> None:
    """Add rounds that enter a window to the ledgers, and subtract rounds that leave a window.

    Rounds that enter the season's window are also written into the stream of question results. The
    ledgers are changed in memory only. The database records which rounds each window now counts.

    To save memory, only one round is loaded at a time: a rebuild of the ledgers adds all rounds of
    a season.
    """
    placed = {judge_round.pk: judge_round.stream_at for judge_round in _new_rounds(changes)}
    entering = {window: {r.pk for r in change.entering} for window, change in changes.items()}
    leaving = {window: {r.pk for r in change.leaving} for window, change in changes.items()}
    changed = {r.pk: r for change in changes.values() for r in [*change.entering, *change.leaving]}
    for judge_round in sorted(changed.values(), key=lambda each: each.number):
        entries = _read_entries(judge_round)
        ledgers.add_nodes(entries)
        start = placed.get(judge_round.pk)
        if start is not None:
            datasets = list(judge_round.questions.values_list("dataset", flat=True))
            ledgers.write_round(entries, start=start, datasets=datasets)
        for window in changes:
            if judge_round.pk in entering[window]:
                ledgers.add(window, entries)
            elif judge_round.pk in leaving[window]:
                ledgers.subtract(window, entries)
        if judge_round.pk in placed:
            for entry in entries:
                if not entry.is_missed:
                    ledgers.relabel(entry.node_id, model=entry.model, arm=entry.arm)
    for window, change in changes.items():
        Counted.objects.filter(window=window, round__in=change.leaving).delete()
        Counted.objects.bulk_create(Counted(window=window, round=r) for r in change.entering)
    if Window.SEASON in changes:
        _restore_labels(ledgers, changes[Window.SEASON])


def _read_entries(judge_round: Round) -> list[RoundEntry]:
    """Return the results of a round's scored nodes, and of invited nodes that missed the round."""
    count = judge_round.questions.count()
    scored = Q(status=Score.Status.SCORED) & ~Q(cells={})
    rows = list(
        Score.objects.filter(scored | Q(reason__in=MISSED), round=judge_round)
        .annotate(text=Cast("cells", TextField()))
        .values_list(
            *("node_id", "model", "arm", "text", "deviation", "reason", "answered", "solved")
        )
    )
    nothing = pack(np.zeros(count, dtype=bool))
    answered = unpack([bytes(row[-2]) or nothing for row in rows], count)
    solved = unpack([bytes(row[-1]) or nothing for row in rows], count)
    return [
        RoundEntry(
            *(node_id, model, arm, _decode_cells(text), answered[i], solved[i], deviation, reason)
        )
        for i, (node_id, model, arm, text, deviation, reason, _, _) in enumerate(rows)
    ]


def _restore_labels(ledgers: SeasonLedgers, change: WindowChange) -> None:
    """Give each node of the changed rounds the model and arm of its newest counted round.

    A round is counted if the window `season` includes it; `change` has the rounds that entered or
    left this window. Usually a node has the right labels already, because the rounds that entered
    are the newest. The labels can be wrong only if a round left (it was voided or is being
    recomputed), or if an entered round is older than a counted round (it was recomputed).
    """
    if change.leaving or _has_newer_counted(change.entering):
        for node_id, model, arm in _read_newest_labels([*change.entering, *change.leaving]):
            ledgers.relabel(node_id, model=model, arm=arm)


def _has_newer_counted(rounds: Sequence[Round]) -> bool:
    """Return whether a counted round that is not in `rounds` is newer than the oldest of `rounds`.

    All `rounds` are of one season. A round is counted if the window `season` includes it.
    """
    numbers = [judge_round.number for judge_round in rounds]
    newer = Round.objects.filter(season=rounds[0].season_id, number__gt=min(numbers))
    return newer.exclude(number__in=numbers).filter(counted__window=Window.SEASON).exists()


def _read_newest_labels(rounds: Sequence[Round]) -> Iterable[tuple[int, str, str]]:
    """Return (node id, model, arm) of each node scored in `rounds`, from its newest counted round.

    All `rounds` are of one season. A round is counted if the window `season` includes it.
    """
    scored = Score.objects.filter(status=Score.Status.SCORED)
    return (
        scored.filter(
            node__in=scored.filter(round__in=rounds).values("node"),
            round__season=rounds[0].season_id,
            round__counted__window=Window.SEASON,
        )
        .exclude(cells={})
        .order_by("node_id", "-round__number")
        .distinct("node_id")
        .values_list("node_id", "model", "arm")
    )


def _save_ledgers(season: Season, ledgers: SeasonLedgers) -> None:
    """Replace the stored ledgers that have changed; delete those without results in any window."""
    Ledger.objects.filter(season=season, node__in=ledgers.touched).delete()
    rows = (
        (
            *(season.pk, node_id, ledger.model, ledger.arm),
            msgspec.json.encode(ledger.tallies).decode(),
            *(ledger.deviations, ledger.deviation_rounds),
            *(pack(ledgers.answered[ledger.row]), pack(ledgers.solved[ledger.row])),
            ledgers.scores[ledger.row].astype("<f4").tobytes(),
        )
        for node_id in sorted(ledgers.touched)
        if (ledger := ledgers.by_node[node_id]).tallies
    )
    copy_rows(Ledger, _LEDGER_COLUMNS, rows)


# ---- standings


def _write_standings(season: Season, window: Window, ledgers: SeasonLedgers) -> None:
    """Replace a window's standings."""
    quarantined = set(Node.objects.filter(quarantined=True).values_list("pk", flat=True))
    nodes = ledgers.in_window(window)
    rows = build_rows(
        nodes,
        window,
        quarantined=quarantined,
        matrix=_build_matrix(season, ledgers, nodes) if window == Window.SEASON else None,
        minimum=_read_minimum(season, window),
    )
    Standing.objects.filter(season=season, window=window).delete()
    placed = enumerate(sort_rows(rows), start=1)
    copy_rows(
        Standing,
        _STANDING_COLUMNS,
        (_to_columns(season, window, row, place) for place, row in placed),
    )


def _build_matrix(
    season: Season, ledgers: SeasonLedgers, nodes: Sequence[NodeLedger]
) -> ResultMatrix:
    """Return the results of `nodes`, a row for each, in all rounds of the season's window."""
    counted = season.rounds.filter(counted__window=Window.SEASON)
    placed = counted.order_by("stream_at").values_list("stream_at", flat=True)
    starts = [start for start in placed if start is not None]
    asked = Question.objects.filter(round__in=counted.filter(stream_at__lt=QUESTIONS))
    by_start: defaultdict[int, list[str]] = defaultdict(list)
    questions = asked.order_by("round__stream_at", "position")
    for start, dataset in questions.values_list("round__stream_at", "dataset"):
        by_start[start or 0].append(dataset)
    return ledgers.build_matrix(nodes, [(at, by_start[at]) for at in starts])


def _read_minimum(season: Season, window: Window) -> Minimum:
    """Return the number of questions and the attendance that a node needs in a window.

    A node that has less of either gets a remark in its standing. In the window `round`, no more
    questions are required than a round has. Attendance is required only in the window `season`, the
    only one with ranks.
    """
    questions, attendance = season.minimum_questions, 0
    if window == Window.ROUND:
        questions = min(questions, season.questions_per_round)
    elif window == Window.SEASON:
        attendance = season.minimum_attendance
    return Minimum(questions, attendance)


def _to_columns(season: Season, window: Window, row: StandingRow, place: int) -> tuple[object, ...]:
    ledger, tally = row.ledger, row.tally
    low, high = row.rank or (None, None)
    return (
        *(season.pk, window.value, ledger.node_id, ledger.model, ledger.arm, row.remark),
        *(place, low, high, row.score, *row.interval, row.correct, row.n),
        *(tally.rounds, tally.missed),
        msgspec.json.encode(tally.cells).decode(),
    )
