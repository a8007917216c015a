"""Columns of downloads, and functions that yield CSV, JSON lines or Parquet in parts; no I/O."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from django.db.models import TextChoices
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Least number of rows in a group of a Parquet file, except the last; a group is kept in memory
# until it is complete.
_GROUP = 50_000
Row = tuple[Any, ...]
Pieces = Iterable[Sequence[Row]]
# Spreadsheets run cells that begin like this; names and models are typed by strangers.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


# ---- columns


class ColumnKind(TextChoices):
    """The type of a column; any value may be missing."""

    TEXT = "text", _("text")
    WHOLE = "whole", _("integer")
    FRACTION = "fraction", _("number")
    TIME = "time", _("time in UTC")
    TRUTH = "truth", _("boolean")
    NESTED = "nested", _("object or list")


@dataclass(frozen=True)
class Column:
    """One column: its name in the file, its type and its meaning.

    `lookup` is the Django lookup that reads the column's values, such as `node__name`. If `lookup`
    is empty, the model field with the column's name has the values.
    """

    name: str
    kind: ColumnKind
    meaning: str | Promise
    lookup: str = ""

    @property
    def field(self) -> str:
        """The model field or Django lookup that reads the column's values."""
        return self.lookup or self.name


# ---- Parquet


class _Sink(io.RawIOBase):
    """A file in memory that keeps what is written until `take` is called."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._at += len(part)
        return len(part)

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def write_parquet(columns: Sequence[Column], pieces: Pieces) -> Iterator[bytes]:
    """Yield the parts of a Parquet file, compressed with Zstandard; times are in UTC.

    Columns of kind NESTED are not supported.
    """
    # Imported here: it costs 60 MB and a third of a second, and only Parquet needs it.
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {
        ColumnKind.TEXT: pa.string(),
        ColumnKind.WHOLE: pa.int64(),
        ColumnKind.FRACTION: pa.float64(),
        ColumnKind.TIME: pa.timestamp("us", tz="UTC"),
        ColumnKind.TRUTH: pa.bool_(),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
    sink, waiting, buffered = _Sink(), [], 0
    with ParquetWriter(sink, schema, compression="zstd") as writer:
        for rows in pieces:
            by_column = zip(zip(*rows, strict=True), schema.types, strict=True) if rows else ()
            arrays = [pa.array(values, kind) for values, kind in by_column]
            waiting += [pa.record_batch(arrays, schema)] if arrays else []
            buffered += len(rows)
            if buffered >= _GROUP:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting, buffered = [], 0
                yield sink.take()
        writer.write_table(pa.Table.from_batches(waiting, schema))
    yield sink.take()


# ---- formats


@dataclass(frozen=True)
class DownloadFormat:
    """A file format: its media type, and the function that yields a file's parts."""

    content_type: str
    write: Callable[[Sequence[Column], Pieces], Iterator[bytes]]


def write_csv(columns: Sequence[Column], pieces: Pieces) -> Iterator[bytes]:
    """Yield a header, then each piece of rows, as CSV (RFC 4180).

    Text that begins like a formula gets an apostrophe in front, because spreadsheets would evaluate
    the formula.
    """
    yield _write_lines([[column.name for column in columns]])
    for rows in pieces:
        # By column, so that its conversion is chosen once, and equal values are converted once.
        by_column = zip(columns, zip(*rows, strict=True), strict=True) if rows else ()
        cells = [_write_cells(column.kind, values) for column, values in by_column]
        yield _write_lines(zip(*cells, strict=True))


def write_jsonl(columns: Sequence[Column], pieces: Pieces) -> Iterator[bytes]:
    """Yield each piece of rows as lines: each row as a JSON object whose keys are column names."""
    names = [column.name for column in columns]
    encoder = msgspec.json.Encoder()
    for rows in pieces:
        yield encoder.encode_lines([dict(zip(names, row, strict=True)) for row in rows])


def _write_lines(rows: Iterable[Iterable[object]]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return buffer.getvalue().encode()


def _write_cells(kind: ColumnKind, values: Sequence[Any]) -> Sequence[object]:
    """Return a column's values for CSV: text is made safe for spreadsheets, times are ISO 8601."""
    if kind is ColumnKind.TEXT:
        unsafe = {text: f"'{text}" for text in {*values} if _begins_like_formula(text)}
        return [unsafe.get(text, text) for text in values] if unsafe else values
    if kind is ColumnKind.TIME:
        written = {moment: _write_time(moment) for moment in {*values}}
        return [written[moment] for moment in values]
    return values


def _begins_like_formula(text: str | None) -> bool:
    return text is not None and text.startswith(_FORMULA_STARTS)


def _write_time(moment: datetime | None) -> str | None:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


FORMATS = {
    "csv": DownloadFormat("text/csv; charset=utf-8", write_csv),
    "jsonl": DownloadFormat("application/jsonl", write_jsonl),
    "parquet": DownloadFormat("application/vnd.apache.parquet", write_parquet),
}
