"""The reward downloads: every score of closed rounds, streamed row by row.

Under ASGI a synchronous iterator would be read to its end before the first byte leaves, so rows
come from an asynchronous one.
"""

import csv
import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db.models import QuerySet

from judge.models import Score
from judge.selectors import exported_scores
from swarm_web.errors import RequestError

# Column, the field it is read from, and what it means: the data dictionary of /downloads/.
COLUMNS = (
    ("season", "round__season__name", "The season's name."),
    ("round", "round__number", "The judge round's number, unique over all seasons."),
    ("node", "node__name", "The node's name."),
    ("model", "model", "The model that the node declared when the round closed."),
    ("arm", "arm", "swarm (mixes in rollouts of others) or isolated, when the round closed."),
    ("score", "score", "Judge score: questions solved / n, from 0 to 1. Empty when absent."),
    ("interval_low", "interval_low", "Lower end of the score's 95 % Wilson interval."),
    ("interval_high", "interval_high", "Upper end of the score's 95 % Wilson interval."),
    ("n", "n", "Questions that count for the node in this round."),
    ("status", "status", "scored, or absent (invited, but took no questions)."),
    ("reason", "reason", "Why the result is lower or missing; empty when it is complete."),
    ("closed_at", "round__closed_at", "When the round closed, ISO 8601 in UTC."),
)
NAMES = tuple(name for name, _, _ in COLUMNS)
FIELDS = tuple(field for _, field, _ in COLUMNS)

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
    return exported_scores().filter(**lookups)


async def stream_csv(scores: QuerySet[Score]) -> AsyncIterator[str]:
    """Write the header at once, then the rows in chunks."""
    yield write_csv([NAMES])
    async for rows in _read_chunks(scores):
        yield write_csv(_write_row(row) for row in rows)


async def stream_jsonl(scores: QuerySet[Score]) -> AsyncIterator[bytes]:
    """Write one JSON object a line, with the columns as keys."""
    async for rows in _read_chunks(scores):
        lines = (msgspec.json.encode(dict(zip(NAMES, row, strict=True))) for row in rows)
        yield b"".join(line + b"\n" for line in lines)


def write_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as CSV text (RFC 4180)."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue()


async def _read_chunks(scores: QuerySet[Score]) -> AsyncIterator[list[Row]]:
    chunk: list[Row] = []
    # Plain values_list() runs its query in the event loop (Django 5.2); with names it does not.
    async for row in scores.values_list(*FIELDS, named=True).aiterator(chunk_size=CHUNK):
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
