"""The handler with which a node reads its own row of the public leaderboard."""

from datetime import datetime
from typing import get_args

from channels.db import database_sync_to_async

from judge.models import Season
from swarm_protocol.messages import NodeStanding, RequestStanding, StandingRemark
from swarm_web.board.leaderboard import count_ranked, read_row
from swarm_web.gateway.handlers.season import find_season
from swarm_web.gateway.session import Session
from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct, Contribution
from swarm_web.relay.selectors.conduct import find_conduct
from swarm_web.relay.selectors.pooled import delivered_to_others

_REMARKS: dict[str, StandingRemark] = {remark: remark for remark in get_args(StandingRemark)}


async def get_standing(session: Session, message: RequestStanding) -> NodeStanding:
    """Return the node's row of the leaderboard (empty fields if it has none) and its relay counts.

    Raises RefusedError if no season is running.
    """
    season = await find_season(session)
    standing: NodeStanding = await database_sync_to_async(_describe)(
        session.node, season, reply_to=message.id, now=session.clock()
    )
    return standing


def _describe(node: Node, season: Season, *, reply_to: str, now: datetime) -> NodeStanding:
    row = read_row(node, season=season, window="season", now=now)
    conduct = find_conduct(node, season_id=season.pk)
    contribution = Contribution.objects.filter(node=node, season=season).first()
    return NodeStanding(
        reply_to=reply_to,
        node=node.name,
        rank=row.rank if row else None,
        score=row.score if row else None,
        interval=row.interval if row else None,
        n=row.n if row else 0,
        rounds=row.rounds if row else 0,
        external_used=contribution.external_used if contribution else 0,
        remark=_REMARKS[row.remark] if row else "",
        ranked=count_ranked(season),
        published=contribution.published if contribution else 0,
        delivered_to_others=delivered_to_others(node.pk, season_id=season.pk),
        used_by_others=contribution.used_by_others if contribution else 0,
        hand_out=conduct.level if conduct else Conduct.Level.FULL.value,
    )
