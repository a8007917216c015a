"""The leaderboard."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from pydantic import Field

from judge.selectors import shown_season, standings_edition
from swarm_web.dashboard.api.bodies.board import describe_board
from swarm_web.dashboard.api.paging import Cursor, Limit, Number, read_cursor, write_cursor
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.board import LeaderboardOut
from swarm_web.dashboard.reports.board import read_board
from swarm_web.errors import RequestError
from swarm_web.paging import Filters

router = Router(tags=["leaderboard"])

Window = Annotated[
    Literal["season", "round", "recent", "24h", "7d"],
    Field(description="The stretch of rounds that counts; `recent` is the season's last K rounds."),
]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
Model = Annotated[Text, Field(description="Only nodes of this model.")]
Arm = Annotated[
    Literal["", "swarm", "isolated", "base"],
    Field(description="Only nodes of this arm; `base` lists untrained models as items."),
]
Owner = Annotated[Text, Field(description="Only nodes of this account, if its profile is public.")]
Search = Annotated[Text, Field(description="Only nodes with this in their name.")]


@read(router, "/leaderboard", LeaderboardOut, conflicts="The order has changed: begin again")
def get_leaderboard(
    request: HttpRequest,
    window: Window = "season",
    model: Model = "",
    arm: Arm = "",
    owner: Owner = "",
    search: Search = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> dict[str, Any]:
    """Rank the nodes by judge score over a window.

    When a round closes the order is drawn up anew. Who is reading page after page is told so with
    409, and begins again: all pages of a walk are of one order.
    """
    edition = _read_edition(window)
    known, after = read_cursor(cursor, tuple[Number, Number]) or (edition, 0)
    board = read_board(
        window,
        now=timezone.now(),
        filters=Filters(model=model, arm=arm, owner=owner, search=search),
        after=after,
        limit=limit,
    )
    if cursor and not known == edition == _read_edition(window):
        raise RequestError(
            "leaderboard.changed",
            "The leaderboard was drawn up anew since the page before.",
            fix="Begin again without a cursor.",
            status=409,
        )
    more = write_cursor([edition, board.later]) if board.later is not None else None
    return {**describe_board(board), "next": more}


def _read_edition(window: str) -> int:
    season = shown_season()
    return standings_edition(season, window) if season else 0
