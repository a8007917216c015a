"""Rows as CSV, JSON lines or Parquet, piece by piece; pure."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from swarm_web.dashboard.downloads.columns import Column, Kind
from swarm_web.dashboard.downloads.parquet import write_parquet

Row = tuple[Any, ...]
Pieces = Iterable[Sequence[Row]]

# Spreadsheets run cells that begin so; names and models are what strangers typed.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Format:
    """A file format: its media type, and how columns and pieces of rows become bytes."""

    content_type: str
    write: Callable[[Sequence[Column], Pieces], Iterator[bytes]]


def write_csv(columns: Sequence[Column], pieces: Pieces) -> Iterator[bytes]:
    """Write a header, then rows, as CSV (RFC 4180); no cell begins like a formula."""
    yield _write_lines([[column.name for column in columns]])
    for rows in pieces:
        # Column by column: what a column needs is decided once, and most of it for each value once.
        by_column = zip(columns, zip(*rows, strict=True), strict=True) if rows else ()
        cells = [_write_cells(column.kind, values) for column, values in by_column]
        yield _write_lines(zip(*cells, strict=True))


def write_jsonl(columns: Sequence[Column], pieces: Pieces) -> Iterator[bytes]:
    """Write one JSON object a line, with the columns' names as keys."""
    names = [column.name for column in columns]
    encoder = msgspec.json.Encoder()
    for rows in pieces:
        yield encoder.encode_lines([dict(zip(names, row, strict=True)) for row in rows])


def _write_lines(rows: Iterable[Iterable[object]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()


def _write_cells(kind: Kind, values: Sequence[Any]) -> Sequence[object]:
    """Return a column's values as the CSV has them."""
    if kind is Kind.TEXT:
        unsafe = {text: f"'{text}" for text in {*values} if _begins_like_formula(text)}
        return [unsafe.get(text, text) for text in values] if unsafe else values
    if kind is Kind.TIME:
        written = {moment: _write_time(moment) for moment in {*values}}
        return [written[moment] for moment in values]
    return values


def _begins_like_formula(text: str | None) -> bool:
    return text is not None and text.startswith(_FORMULA_STARTS)


def _write_time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


FORMATS = {
    "csv": Format("text/csv; charset=utf-8", write_csv),
    "jsonl": Format("application/jsonl", write_jsonl),
    "parquet": Format("application/vnd.apache.parquet", write_parquet),
}
