"""Keyset pagination: a page begins after the key of a row, not after a number of rows.

If rows are added or removed between requests, no other row is skipped or shown twice. The last page
costs as much as the first.
"""

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from django.db.models import F, Model, OrderBy, Q, QuerySet

Row = TypeVar("Row", bound=Model)
Decoded = TypeVar("Decoded")
Key = tuple[Any, ...]

MAX_NUMBER = 2**63 - 1
_DIGITS = re.compile(r"\d+", re.ASCII)

# Types of key parts, limited to what the database accepts.
KeyNumber = Annotated[int, msgspec.Meta(ge=0, le=MAX_NUMBER)]
KeyMoment = Annotated[datetime, msgspec.Meta(tz=True)]
KeyText = Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00]*$")]


@dataclass(frozen=True)
class KeyColumn:
    """A column that rows are ordered by; `name` is a lookup path such as `round__number`."""

    name: str
    descending: bool = False
    nulls_last: bool = False

    @property
    def order(self) -> OrderBy:
        """The column's expression in ORDER BY."""
        return OrderBy(F(self.name), descending=self.descending, nulls_last=self.nulls_last or None)

    def after(self, value: object) -> Q:
        """Return the condition that a row's value comes after `value` in the column's order."""
        if value is None:
            return Q(pk__in=())  # nulls are last
        later = Q(**{f"{self.name}__{'lt' if self.descending else 'gt'}": value})
        return later | Q(**{f"{self.name}__isnull": True}) if self.nulls_last else later

    def not_before(self, value: object) -> Q:
        """Return a condition that an index can use: it holds for `value` and all values after it.

        It may hold for earlier values too: with `nulls_last` it is `Q()`, which holds for all.
        """
        if self.nulls_last:
            return Q()
        return Q(**{f"{self.name}__{'lte' if self.descending else 'gte'}": value})

    def same(self, value: object) -> Q:
        """Return the condition that a row has `value` in this column."""
        return Q(**{f"{self.name}__isnull": True}) if value is None else Q(**{self.name: value})


@dataclass(frozen=True)
class KeysetPage(Generic[Row]):
    """Rows of a page; `next` is the key after which the next page begins, None on the last one."""

    rows: list[Row]
    next: Key | None


class Keyset:
    """The columns that rows are ordered by; a row's values in them are its key, which is unique.

    A column is given as for `order_by`, or as a KeyColumn. `kind` is the type to which
    `decode_key` decodes the keys that clients send, by default a tuple of one number.
    """

    def __init__(self, *columns: str | KeyColumn, kind: Any = tuple[KeyNumber]) -> None:
        self.columns = [_read_column(column) for column in columns]
        self.kind = kind
        self._paths = [attrgetter(column.name.replace("__", ".")) for column in self.columns]

    def sort(self, rows: QuerySet[Row]) -> QuerySet[Row]:
        """Return the rows in the order of this keyset."""
        return rows.order_by(*(column.order for column in self.columns))

    def key_of(self, row: Model) -> Key:
        """Return the key of a row."""
        return tuple(path(row) for path in self._paths)

    def after(self, rows: QuerySet[Row], key: Key | None) -> QuerySet[Row]:
        """Return the rows after `key`, in the keyset's order; all rows if `key` is None."""
        return self.sort(rows if key is None else rows.filter(self._condition_after(key)))

    def read(self, rows: QuerySet[Row], *, after: Key | None, limit: int) -> KeysetPage[Row]:
        """Return the page of up to `limit` rows after the key `after`, in one query.

        If `after` is None, the result is the first page.
        """
        found = list(self.after(rows, after)[: limit + 1])
        shown = found[:limit]
        return KeysetPage(shown, self.key_of(shown[-1]) if len(found) > limit else None)

    def find_earlier(self, rows: QuerySet[Row], key: Key, *, limit: int) -> Key | None:
        """Return the key after which the previous page begins.

        The previous page ends at the row with `key` and has up to `limit` rows. If it is the first
        page, no row is before it, and the result is (). If no row is at or before `key`, there is
        no previous page, and the result is None.
        """
        backwards = rows.exclude(self._condition_after(key)).order_by(
            *(column.order for column in self.columns)
        )
        found = list(backwards.reverse()[: limit + 1])
        if not found:
            return None
        return self.key_of(found[limit]) if len(found) > limit else ()

    def _condition_after(self, key: Key) -> Q:
        """Return the condition that a row's key comes after `key`.

        The first column in which the two keys differ decides.
        """
        condition, same = Q(), Q()
        for column, value in zip(self.columns, key, strict=True):
            condition |= same & column.after(value)
            same &= column.same(value)
        # Implied by the rest: with it an index finds the place.
        return self.columns[0].not_before(key[0]) & condition


@dataclass(frozen=True)
class Listing(Generic[Row]):
    """Rows that are listed page by page, and their order."""

    rows: QuerySet[Row]
    keyset: Keyset


def _read_column(column: str | KeyColumn) -> KeyColumn:
    if isinstance(column, KeyColumn):
        return column
    return KeyColumn(column.removeprefix("-"), descending=column.startswith("-"))


# ---- keys in URLs


def encode_key(key: object) -> str:
    """Return a key as text that is opaque to clients."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def decode_key(text: str, kind: type[Decoded]) -> Decoded:
    """Return the key that `encode_key` wrote as `text`.

    Raises ValueError for a text that cannot be decoded, and for a key that is not a `kind`.
    """
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=kind)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise ValueError(f"not a key: {text[:20]!r}") from problem


def encode_numbers(*numbers: int) -> str:
    """Return whole numbers as readable text: `120`, or `17-4`."""
    return "-".join(map(str, numbers))


def decode_numbers(text: str, *, count: int = 1) -> tuple[int, ...]:
    """Return the `count` numbers in a text that `encode_numbers` wrote.

    A number above MAX_NUMBER becomes MAX_NUMBER. Raises ValueError if the text is not `count`
    numbers.
    """
    parts = text.split("-")
    if len(parts) != count or not all(map(_DIGITS.fullmatch, parts)):
        raise ValueError(f"not {count} numbers: {text[:20]!r}")
    return tuple(min(int(part[:20]), MAX_NUMBER) for part in parts)
