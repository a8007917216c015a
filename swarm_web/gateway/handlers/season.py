"""Functions that read the running season and its current round, for use by the handlers."""

from channels.db import database_sync_to_async

from judge.models import Season
from judge.selectors.rounds import current_round, describe_round
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import RoundInfo
from swarm_web.gateway.session import Session


async def find_season(session: Session) -> Season:
    """Return the running season. Raises RefusedError if there is none."""
    season = await session.shared.season.get()
    if season is None:
        raise RefusedError(ErrorCode.SEASON_NONE, "no season is running")
    return season


async def read_round(season: Season | None) -> RoundInfo | None:
    """Return the season's current round; None without a season or a current round."""
    return await database_sync_to_async(_describe_current)(season) if season else None


def _describe_current(season: Season) -> RoundInfo | None:
    judge_round = current_round(season)
    return describe_round(judge_round) if judge_round else None
