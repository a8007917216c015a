"""The reward downloads: every score of closed rounds, streamed row by row.

A row stands as it was scored, but for nodes that are quarantined now: their rows say so, and who
counts the rows whose status is `scored` finds the nodes that the leaderboard shows.

Under ASGI a synchronous iterator would be read to its end before the first byte leaves, so rows
come from an asynchronous one.
"""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db.models import Case, F, QuerySet, Value, When

from judge.models import Score
from judge.selectors import exported_scores
from swarm_web.errors import RequestError

# Column, the field it is read from, and what it means: the data dictionary of /downloads/.
COLUMNS = (
    ("season", "round__season__name", "The season's name."),
    ("round", "round__number", "The judge round's number, unique over all seasons."),
    ("node", "node__name", "The node's name."),
    ("model", "model", "The model that the node declared when the round closed."),
    (
        "arm",
        "arm",
        "swarm (mixes in rollouts of others), isolated, or base (untrained), when the round "
        "closed.",
    ),
    (
        "score",
        "score",
        "Judge score of the round, from 0 to 1: macro pass@1, the plain mean over datasets of the "
        "share of questions solved. Empty when absent. The mean over a season's rounds is the "
        "season's score as long as each round asks equally many questions of each dataset and "
        "none was left out.",
    ),
    (
        "interval_low",
        "interval_low",
        "Lower end of the score's 95 % interval (Jeffreys, with Kish's effective n).",
    ),
    ("interval_high", "interval_high", "Upper end of that interval."),
    ("n", "n", "Questions that count for the node in this round."),
    (
        "status",
        "shown_status",
        "scored; absent (invited, but took no questions); or quarantined (the node is out of the "
        "ranks now, whatever it scored).",
    ),
    (
        "reason",
        "shown_reason",
        "Why the result is lower, missing or does not count: unanswered, unscored, not_offered, "
        "came_late or quarantined. Empty when it is complete.",
    ),
    ("closed_at", "round__closed_at", "When the round closed, ISO 8601 in UTC."),
)
NAMES = tuple(name for name, _, _ in COLUMNS)
FIELDS = tuple(field for _, field, _ in COLUMNS)
QUARANTINED = Value("quarantined")

# Query parameter, lookup, and how its value is read.
FILTERS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "season": ("round__season__name", str),
    "node": ("node__name", str),
    "arm": ("arm", str),
    "model": ("model", str),
    "round_from": ("round__number__gte", int),
    "round_to": ("round__number__lte", int),
}
# Rows read from the database, and written to the visitor, at a time.
CHUNK = 1000
# Spreadsheets run cells that begin so; names and models are what strangers typed.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")

Row = tuple[Any, ...]


def rewards() -> QuerySet[Score]:
    """Return every score of closed rounds as the downloads show it."""
    return exported_scores().annotate(
        shown_status=Case(When(node__quarantined=True, then=QUARANTINED), default=F("status")),
        shown_reason=Case(When(node__quarantined=True, then=QUARANTINED), default=F("reason")),
    )


def select_rewards(query: Mapping[str, str]) -> QuerySet[Score]:
    """Return the scores that a query string asks for. Raises RequestError."""
    lookups: dict[str, object] = {}
    for name, text in query.items():
        if name not in FILTERS:
            raise RequestError(
                "query.unknown_filter",
                f"There is no filter {name[:40]!r}.",
                fix=f"Use {', '.join(FILTERS)}.",
            )
        lookup, read = FILTERS[name]
        try:
            lookups[lookup] = read(text)
        except ValueError:
            raise RequestError(
                "query.invalid_filter",
                f"{name} is not a number: {text[:40]!r}.",
                fix="Give a round number, such as 12.",
            ) from None
    return rewards().filter(**lookups)


async def stream_csv(scores: QuerySet[Score]) -> AsyncIterator[str]:
    """Write the header at once, then the rows in chunks."""
    yield write_csv([NAMES])
    async for rows in read_chunks(scores, FIELDS):
        yield write_csv(_write_row(row) for row in rows)


async def stream_jsonl(scores: QuerySet[Score]) -> AsyncIterator[bytes]:
    """Write one JSON object a line, with the columns as keys."""
    async for rows in read_chunks(scores, FIELDS):
        yield write_jsonl(NAMES, rows)


def write_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV text (RFC 4180)."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


def write_jsonl(names: Iterable[str], rows: Iterable[Row]) -> bytes:
    """Return rows as one JSON object a line."""
    names = tuple(names)
    lines = (msgspec.json.encode(dict(zip(names, row, strict=True))) for row in rows)
    return b"".join(line + b"\n" for line in lines)


async def read_chunks(table: QuerySet[Any], fields: Iterable[str]) -> AsyncIterator[list[Row]]:
    """Read some fields of a query's rows, CHUNK rows at a time."""
    chunk: list[Row] = []
    # Plain values_list() runs its query in the event loop (Django 5.2); with names it does not.
    async for row in table.values_list(*fields, named=True).aiterator(chunk_size=CHUNK):
        chunk.append(row)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _write_row(row: Row) -> list[object]:
    return [_write_cell(value) for value in row]


def _write_cell(value: object) -> object:
    """Return a cell that no spreadsheet runs and that says its time in UTC."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, str) and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value
