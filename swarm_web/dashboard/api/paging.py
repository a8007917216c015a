"""Pages by cursor: a page begins after a row's key, so no row is missed or told twice.

A cursor is opaque to clients. It holds the key of the last row that was told; rows that come or go
in the meantime do not move the others, as they would with page numbers.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from django.db.models import Model, QuerySet
from pydantic import Field

from swarm_web.errors import RequestError

Row = TypeVar("Row", bound=Model)
Key = TypeVar("Key")

MAX_PAGE = 500
Cursor = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^[A-Za-z0-9_\-]*$",
        description="`next` of the page before; empty for the first page.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=MAX_PAGE, description="How many items a page has at most.")]
# Keys that the database understands.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Name = Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00]*$")]


def read_page(
    rows: QuerySet[Row],
    *,
    limit: int,
    key: Callable[[Row], object],
    describe: Callable[[Row], dict[str, Any]],
) -> dict[str, Any]:
    """Return the first rows as `{items, next}`; `key` tells where the page after begins."""
    found = list(rows[: limit + 1])
    more = len(found) > limit
    return {
        "items": [describe(row) for row in found[:limit]],
        "next": write_cursor(key(found[limit - 1])) if more else None,
    }


def write_cursor(key: object) -> str:
    """Return the cursor of a key."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode().rstrip("=")


def read_cursor(cursor: str, kind: type[Key]) -> Key | None:
    """Return the key of a cursor, None for the first page.

    Raises RequestError for a cursor that this list never gave: there is no such page.
    """
    if not cursor:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=kind)
    except (binascii.Error, msgspec.DecodeError, UnicodeDecodeError):
        raise RequestError(
            "query.cursor",
            "This cursor names no page of this list.",
            fix="Begin without a cursor, then give the `next` of the page before.",
            status=404,
        ) from None
