"""The leaderboard."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.bodies.board import describe_board
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.board import LeaderboardOut
from swarm_web.dashboard.reports.board import read_board

router = Router(tags=["leaderboard"])

Window = Annotated[
    Literal["season", "round", "recent", "24h", "7d"],
    Field(description="The stretch of rounds that counts; `recent` is the season's last K rounds."),
]


@read(router, "/leaderboard", LeaderboardOut)
def get_leaderboard(request: HttpRequest, window: Window = "season") -> dict[str, Any]:
    """Rank the nodes by judge score over a window."""
    return describe_board(read_board(window, now=timezone.now()))
