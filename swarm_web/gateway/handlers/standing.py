"""A node's own row of the leaderboard, the same that the page shows."""

from typing import get_args

from channels.db import database_sync_to_async

from swarm_protocol.messages import RequestStanding, Standing, StandingRemark
from swarm_web.gateway.handlers.season import find_season
from swarm_web.gateway.session import Session
from swarm_web.leaderboard import LeaderboardRow, read_line

_REMARKS: dict[str, StandingRemark] = {remark: remark for remark in get_args(StandingRemark)}


async def tell_standing(session: Session, message: RequestStanding) -> Standing:
    """Tell the node its own row of the leaderboard."""
    season = await find_season(session)
    row: LeaderboardRow | None = await database_sync_to_async(read_line)(
        session.node, season=season, window="season", now=session.clock()
    )
    return Standing(
        reply_to=message.id,
        node=session.node.name,
        rank=row.rank if row else None,
        score=row.score if row else None,
        interval=row.interval if row else None,
        n=row.n if row else 0,
        rounds=row.rounds if row else 0,
        external_used=row.external_used if row else 0,
        remark=_REMARKS[row.remark] if row else "",
    )
