"""A node's own row of the leaderboard, the same that the page shows."""

from swarm_protocol.messages import RequestStanding, Standing
from swarm_web.gateway.handlers.season import find_season
from swarm_web.gateway.session import Session


async def tell_standing(session: Session, message: RequestStanding) -> Standing:
    """Tell the node its own row of the leaderboard."""
    await find_season(session)
    name = session.node.name
    row = (await session.shared.standings.get()).get(name)
    if row is None:
        return Standing(
            reply_to=message.id,
            node=name,
            rank=None,
            score=None,
            interval=None,
            n=0,
            rounds=0,
            external_used=0,
        )
    return Standing(
        reply_to=message.id,
        node=name,
        rank=row.rank,
        score=row.score,
        interval=row.interval,
        n=row.n,
        rounds=row.rounds,
        external_used=row.external_used,
    )
