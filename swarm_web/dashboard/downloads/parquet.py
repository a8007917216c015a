"""Rows as Parquet, streamed by row groups; pure."""

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from swarm_web.dashboard.downloads.columns import Column, Kind

# Rows of a group wait in memory, as Arrow's arrays, until there are so many.
_GROUP = 50_000


class _Sink(io.RawIOBase):
    """A file that keeps what is written until it is taken."""

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
        """Return what was written since the last time."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def write_parquet(
    columns: Sequence[Column], pieces: Iterable[Sequence[tuple[Any, ...]]]
) -> Iterator[bytes]:
    """Write rows as one Parquet file, compressed with Zstandard; times are in UTC."""
    # Some 60 MB and a third of a second, which only those who want Parquet should cost.
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {
        Kind.TEXT: pa.string(),
        Kind.WHOLE: pa.int64(),
        Kind.FRACTION: pa.float64(),
        Kind.TIME: pa.timestamp("us", tz="UTC"),
        Kind.TRUTH: pa.bool_(),
    }
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
    sink, waiting, held = _Sink(), [], 0
    with ParquetWriter(sink, schema, compression="zstd") as writer:
        for rows in pieces:
            by_column = zip(zip(*rows, strict=True), schema.types, strict=True) if rows else ()
            arrays = [pa.array(values, kind) for values, kind in by_column]
            waiting += [pa.record_batch(arrays, schema)] if arrays else []
            held += len(rows)
            if held >= _GROUP:
                writer.write_table(pa.Table.from_batches(waiting, schema))
                waiting, held = [], 0
                yield sink.take()
        writer.write_table(pa.Table.from_batches(waiting, schema))
    yield sink.take()
