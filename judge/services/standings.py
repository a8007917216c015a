"""The leaderboard is kept ready: ledgers and standings follow the rounds that close.

A refresh books the rounds that entered or left each window since the last one. It reads the scores
of those rounds and the season's ledgers, never answers and never other rounds. Its cost grows with
a round and with the number of nodes; of the history it reads a few kilobytes for each node.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

import msgspec
from django.db import connection, transaction

from judge.models import Question, Round, Season, Standing, Window
from judge.services.ledgers import load_books, read_entries, read_newest_labels, save_books
from judge.services.windows import (
    Change,
    is_older_than_counted,
    note_counted,
    plan_changes,
)
from swarm_record.accounts import Account, Books
from swarm_record.publishing import Entrant, Line, Minimum, draw_up, in_order
from swarm_record.ranking import Record
from swarm_record.stream import QUESTIONS, place_round
from swarm_web import bus
from swarm_web.bulk import copy_rows
from swarm_web.nodes.models import Node

_COLUMNS = (
    *("season_id", "window", "node_id", "model", "arm", "remark", "place", "rank_low"),
    *("rank_high", "score", "interval_low", "interval_high", "correct", "n", "rounds", "missed"),
    "cells",
)


def refresh_standings(
    season: Season, *, now: datetime, excluding: Collection[int] = frozenset()
) -> bool:
    """Bring a season's standings up to date; tell whether anything had changed.

    Rounds with the keys `excluding` are taken out until the next refresh.
    """
    with transaction.atomic():
        lock_standings(season)
        changes = plan_changes(season, now=now, excluding=excluding)
        if not changes:
            return False
        end = _place_in_stream(season, _first_counted(changes))
        books = load_books(season, end=end)
        _book(books, changes)
        save_books(season, books)
        for window in changes:
            _publish(season, window, books)
        bus.ring(bus.VIEWERS)
    return True


def republish_standings(season: Season) -> None:
    """Draw up all windows again, after the operator changed who is ranked."""
    with transaction.atomic():
        lock_standings(season)
        books = load_books(season, end=_stream_end(season))
        for window in Window:
            _publish(season, window, books)
        bus.ring(bus.VIEWERS)


def lock_standings(season: Season) -> None:
    """Let one transaction at a time change what a season's leaderboard follows.

    Whoever also changes a round takes this lock first, as a refresh does.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('judge.standings'), %s)", [season.pk])


def _first_counted(changes: Mapping[Window, Change]) -> list[Round]:
    """Return the rounds that join the stream: every round begins in this window."""
    return changes[Window.SEASON].entering if Window.SEASON in changes else []


def _place_in_stream(season: Season, rounds: Iterable[Round]) -> int:
    """Give rounds that have none a place in the stream; return the stream's end."""
    end = _stream_end(season)
    for judge_round in rounds:
        if judge_round.stream_at is None:
            judge_round.stream_at, end = place_round(end, judge_round.questions.count())
            judge_round.save(update_fields=["stream_at"])
    return end


def _stream_end(season: Season) -> int:
    last = season.rounds.filter(stream_at__isnull=False).order_by("-stream_at").first()
    if last is None or last.stream_at is None:
        return 0
    return last.stream_at + (1 if last.stream_at >= QUESTIONS else last.questions.count())


def _book(books: Books, changes: Mapping[Window, Change]) -> None:
    """Add and subtract rounds, and write new ones into the stream.

    One round after the other: books that are written anew take in all rounds of a season.
    """
    placed = {judge_round.pk: judge_round.stream_at for judge_round in _first_counted(changes)}
    entering = {window: {r.pk for r in change.entering} for window, change in changes.items()}
    leaving = {window: {r.pk for r in change.leaving} for window, change in changes.items()}
    changed = {r.pk: r for change in changes.values() for r in [*change.entering, *change.leaving]}
    for judge_round in sorted(changed.values(), key=lambda each: each.number):
        entries = read_entries(judge_round)
        books.open_accounts(entries)
        start = placed.get(judge_round.pk)
        if start is not None:
            datasets = list(judge_round.questions.values_list("dataset", flat=True))
            books.write_round(entries, start=start, datasets=datasets)
        for window in changes:
            if judge_round.pk in entering[window]:
                books.add(window, entries)
            elif judge_round.pk in leaving[window]:
                books.subtract(window, entries)
        if judge_round.pk in placed:
            for entry in entries:
                if not entry.is_missed:
                    books.rename(entry.node_id, model=entry.model, arm=entry.arm)
    for window, change in changes.items():
        note_counted(window, change)
    if Window.SEASON in changes:
        _rename_back(books, changes[Window.SEASON])


def _rename_back(books: Books, change: Change) -> None:
    """Let the accounts of a change's nodes follow the newest of their rounds that count.

    That is the round that entered, unless an older one was recomputed or one left: a void one.
    """
    if change.leaving or is_older_than_counted(change.entering):
        for node_id, model, arm in read_newest_labels([*change.entering, *change.leaving]):
            books.rename(node_id, model=model, arm=arm)


def _publish(season: Season, window: Window, books: Books) -> None:
    """Replace a window's standings."""
    quarantined = set(Node.objects.filter(quarantined=True).values_list("pk", flat=True))
    accounts = books.in_window(window)
    entrants = [
        Entrant(
            node_id=account.node_id,
            model=account.model,
            arm=account.arm,
            cells=account.tallies[window].cells,
            rounds=account.tallies[window].rounds,
            missed=account.tallies[window].missed,
            quarantined=account.node_id in quarantined,
        )
        for account in accounts
    ]
    lines = draw_up(
        entrants,
        record=_read_record(season, books, accounts) if window == Window.SEASON else None,
        minimum=_minimum(season, window),
    )
    Standing.objects.filter(season=season, window=window).delete()
    placed = enumerate(in_order(lines), start=1)
    copy_rows(Standing, _COLUMNS, (_row(season, window, line, place) for place, line in placed))


def _read_record(season: Season, books: Books, accounts: Sequence[Account]) -> Record:
    """Return what these accounts' nodes did in the rounds that the season counts."""
    counted = season.rounds.filter(counted__window=Window.SEASON)
    placed = counted.order_by("stream_at").values_list("stream_at", flat=True)
    starts = [start for start in placed if start is not None]
    asked = Question.objects.filter(round__in=counted.filter(stream_at__lt=QUESTIONS))
    by_start: defaultdict[int, list[str]] = defaultdict(list)
    questions = asked.order_by("round__stream_at", "position")
    for start, dataset in questions.values_list("round__stream_at", "dataset"):
        by_start[start or 0].append(dataset)
    return books.read_record(books.rows(accounts), [(at, by_start[at]) for at in starts])


def _minimum(season: Season, window: Window) -> Minimum:
    """Return from what on a node is ranked; one round can give no more questions than it asks.

    Windows without ranks ask for no attendance.
    """
    questions, attendance = season.minimum_questions, 0
    if window == Window.ROUND:
        questions = min(questions, season.questions_per_round)
    elif window == Window.SEASON:
        attendance = season.minimum_attendance
    return Minimum(questions, attendance)


def _row(season: Season, window: Window, line: Line, place: int) -> tuple[object, ...]:
    entrant = line.entrant
    low, high = line.rank or (None, None)
    return (
        *(season.pk, window.value, entrant.node_id, entrant.model, entrant.arm, line.remark),
        *(place, low, high, line.score, *line.interval, line.correct, line.n),
        *(entrant.rounds, entrant.missed),
        msgspec.json.encode(entrant.cells).decode(),
    )
