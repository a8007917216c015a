"""Downloads the site's lists of seasons, rounds and leaderboard lines, page by page."""

from collections.abc import Iterator
from typing import Generic, TypeVar
from urllib.parse import quote

from msgspec import Struct

from node_client.commands.verification.download import fetch_record
from node_client.commands.verification.records import UPDATE, decode
from node_client.site import Site
from swarm_tasks.cells import Cells

# Far more than any site has.
MAX_PAGES = 10_000

Item = TypeVar("Item")


class ListedSeason(Struct, frozen=True):
    """The rules of a season that determine its leaderboard."""

    season: str
    questions_per_round: int
    minimum_questions: int
    minimum_attendance: int = 0


class ListedRound(Struct, frozen=True):
    """An entry of the list of rounds; `closed_at` is null until the round has closed."""

    number: int
    season: str
    phase: str
    closed_at: str | None
    commitment: str


class BoardRow(Struct, frozen=True):
    """A line of the season's leaderboard.

    `rank` is the best and the worst rank, None for an unranked node; `remark` says why it is
    unranked. `score` and its `interval` are over `n` questions in `rounds` rounds; `missed` is the
    number of rounds that the node missed.
    """

    node: str
    model: str
    arm: str
    rank: tuple[int, int] | None
    remark: str
    score: float
    interval: tuple[float, float]
    n: int
    rounds: int
    cells: Cells
    missed: int = 0


class _Page(Struct, Generic[Item], frozen=True):
    items: list[Item]
    next: str | None = None
    season: str = ""


def list_seasons(site: Site) -> list[ListedSeason]:
    """Return the seasons that have started, newest first.

    Raises UncheckableError if the list cannot be downloaded or read.
    """
    return _list_items(site, "seasons?", ListedSeason)


def list_rounds(site: Site) -> list[ListedRound]:
    """Return all rounds that the site lists, newest first.

    Raises UncheckableError if the list cannot be downloaded or read.
    """
    return _list_items(site, "rounds?limit=500", ListedRound)


def list_board(site: Site) -> tuple[str, list[BoardRow]]:
    """Return the name of the season that the leaderboard shows, and the lines of the leaderboard.

    The lines are in the site's order, but those of base nodes come last. Raises UncheckableError if
    the leaderboard cannot be downloaded or read.
    """
    season, rows = "", list[BoardRow]()
    for arm in ("", "base"):
        for page in _iterate_pages(
            site, f"leaderboard?window=season&limit=500&arm={arm}", BoardRow
        ):
            season = page.season
            rows += page.items
    return season, rows


def _list_items(site: Site, path: str, kind: type[Item]) -> list[Item]:
    return [item for page in _iterate_pages(site, path, kind) for item in page.items]


def _iterate_pages(site: Site, path: str, kind: type[Item]) -> Iterator[_Page[Item]]:
    cursor: str | None = ""
    for _ in range(MAX_PAGES):
        more = f"&cursor={quote(cursor)}" if cursor else ""
        raw = fetch_record(f"{site.base}/api/v1/{path}{more}")
        what = f"list of {path.split('?')[0]}"
        page = decode(raw, _Page[kind], what=what, fix=UPDATE)  # type: ignore[valid-type]
        yield page
        cursor = page.next
        if cursor is None:
            return
