"""Pages of the API's lists. A cursor is opaque text with the key of a page's last row."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from django.db.models import Model
from pydantic import Field

from swarm_web.core.errors import RequestError
from swarm_web.core.keyset import Listing, decode_key, encode_key

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")
Decoded = TypeVar("Decoded")

MAX_PAGE = 500
Cursor = Annotated[
    str,
    Field(
        max_length=300,
        pattern=r"^[A-Za-z0-9_\-]*$",
        description="`next` of the previous page; empty for the first page.",
    ),
]
Limit = Annotated[
    int, Field(ge=1, le=MAX_PAGE, description="The largest number of items on a page.")
]


@dataclass(frozen=True)
class ListPage(Generic[Item]):
    """A page of a list; `next` is the cursor of the following page, None on the last one."""

    items: list[Item]
    next: str | None


def read_page(
    listing: Listing[Row], *, cursor: str, limit: int, report: Callable[[Row], Item]
) -> ListPage[Item]:
    """Return the page of at most `limit` rows after a cursor; `report` makes an item of each row.

    An empty cursor means the first page. Raises RequestError for an invalid cursor.
    """
    after = read_cursor(cursor, listing.keyset.kind)
    page = listing.keyset.read(listing.rows, after=after, limit=limit)
    return ListPage(
        [report(row) for row in page.rows], encode_key(page.next) if page.next else None
    )


def read_rows(listing: Listing[Row], *, cursor: str, limit: int) -> ListPage[Row]:
    """Return a page as `read_page` does, with the rows themselves as items."""
    return read_page(listing, cursor=cursor, limit=limit, report=lambda row: row)


def read_cursor(cursor: str, kind: type[Decoded]) -> Decoded | None:
    """Return the key in a cursor, decoded as `kind`; None if the cursor is empty (first page).

    Raises RequestError (404) if the cursor cannot be decoded.
    """
    if not cursor:
        return None
    try:
        return decode_key(cursor, kind)
    except ValueError:
        raise RequestError(
            "query.cursor",
            "This cursor names no page of this list.",
            fix="Begin without a cursor, then give the `next` of the page before.",
            status=404,
        ) from None
