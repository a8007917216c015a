"""The read API's /leaderboard."""

from dataclasses import dataclass
from typing import Annotated, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from pydantic import Field

from swarm_web.board.leaderboard import Filters, Leaderboard
from swarm_web.core.errors import RequestError
from swarm_web.core.keyset import KeyNumber, encode_key
from swarm_web.dashboard.api.fields import (
    Answered,
    Arm,
    Cells,
    Connected,
    Interval,
    Model,
    Moment,
    Next,
    NodeName,
    OverBase,
    Parameters,
    Rank,
    Remark,
    ReportSchema,
    Score,
    SeasonName,
    Title,
    describe,
    read_under,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, read_cursor
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.board import BoardLine, list_trained, read_board, read_edition

router = Router(tags=["leaderboard"])

Window = Annotated[
    Literal["season", "round", "recent", "24h", "7d"],
    describe("The rounds that count; `recent` is the last K rounds of the season."),
]
Text = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
OfModel = Annotated[Text, describe("Only nodes of this model.")]
OfArm = Annotated[
    Literal["", "swarm", "isolated", "base"],
    describe("Only nodes of this arm; `base` lists untrained models as items."),
]
Owner = Annotated[Text, describe("Only nodes of this account, if its profile is public.")]
Search = Annotated[Text, describe("Only nodes with this in their name.")]


class BaseItem(ReportSchema):
    """A node's line of the leaderboard: its score over the window, in total and by dataset."""

    rank: Rank
    remark: Remark
    node: NodeName
    title: Title
    model: Model
    parameters: Parameters
    arm: Arm
    score: Score
    interval: Interval
    recent_score: float | None = describe(
        "The score over the season's last rounds, as many as the window `recent` has.", 0.38
    )
    n: Answered
    rounds: int = describe("How many rounds of the window it answered.", 4)
    missed: int = describe("How many rounds of the window it missed although it was invited.", 1)
    cells: Cells
    used_by_others: int = describe(
        "How many times other nodes trained on one of its rollouts.", 640
    )
    external_used: int = describe("How many external rollouts it trained on in the season.", 812)
    last_seen: Moment | None
    connected: Connected


class LeaderboardItem(BaseItem):
    """A node on the leaderboard; nodes that cannot be distinguished share ranks."""

    model_config = read_under(row=BaseItem.model_fields)

    over_base: OverBase
    over_base_interval: Interval | None


class LeaderboardOut(ReportSchema):
    """A season's leaderboard, best first."""

    model_config = read_under(board="season window as_of base quarantined waiting".split())

    season: SeasonName
    window: str = describe("The window that was asked for.", "season")
    as_of: Moment
    items: list[LeaderboardItem]
    next: Next
    base: list[BaseItem] = describe(
        "Untrained nodes for comparison, one for each model, at most 50; not ranked."
    )
    quarantined: int = describe("How many nodes the operator removed from the ranks.", 0)
    waiting: list[NodeName] = describe(
        "The first connected nodes that the season has not judged yet."
    )


@dataclass(frozen=True)
class LeaderboardPage:
    """A page of the leaderboard; `items` are the lines of `board.rows` only, not of `board.base`.

    `next` is the cursor of the next page, None on the last page.
    """

    board: Leaderboard
    items: list[BoardLine]
    next: str | None


@read(router, "/leaderboard", LeaderboardOut, conflicts="The order has changed: begin again")
def get_leaderboard(
    request: HttpRequest,
    window: Window = "season",
    model: OfModel = "",
    arm: OfArm = "",
    owner: Owner = "",
    search: Search = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> LeaderboardPage:
    """Rank the nodes by judge score over a window.

    The order changes when the leaderboard is recomputed, for example when a round closes. A cursor
    of the earlier order is then refused with 409, so that all pages that a client reads belong to
    one order.
    """
    edition = read_edition(window)
    known, after = read_cursor(cursor, tuple[KeyNumber, KeyNumber]) or (edition, 0)
    board = read_board(
        window,
        now=timezone.now(),
        filters=Filters(model=model, arm=arm, owner=owner, search=search),
        after=after,
        limit=limit,
    )
    if cursor and not known == edition == read_edition(window):
        raise RequestError(
            "leaderboard.changed",
            "The leaderboard has changed since the previous page.",
            fix="Start again without a cursor.",
            status=409,
        )
    more = encode_key((edition, board.later)) if board.later is not None else None
    return LeaderboardPage(board, list_trained(board), more)
