"""The first message of a connection."""

from channels.db import database_sync_to_async
from django.conf import settings

from judge.selectors import describe_season
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Hello, Welcome
from swarm_protocol.version import PROTOCOL_VERSION, parse_version
from swarm_web.gateway.handlers.season import read_round
from swarm_web.gateway.session import Session
from swarm_web.nodes.services import introduce


async def greet(session: Session, hello: Hello) -> Welcome:
    """Introduce the node and tell it the season's rules and the round."""
    if session.greeted:
        raise RefusedError(ErrorCode.PROTOCOL_HELLO, "this connection has said hello already")
    _check_client_version(hello.client)
    now = session.clock()
    await database_sync_to_async(introduce)(session.node, hello, now=now)
    # From here on doorbells are forwarded, so that no change is missed between read and reply.
    session.greeted = True
    season = await session.shared.season.get()
    return Welcome(
        reply_to=hello.id,
        protocol=PROTOCOL_VERSION,
        server=settings.SITE_NAME,
        node=session.node.name,
        arm=hello.arm,
        now=now.isoformat(),
        season=describe_season(season) if season else None,
        round=await read_round(season),
    )


def _check_client_version(client: str) -> None:
    """Raise RefusedError when the client's version cannot be read or is no longer served."""
    try:
        version = parse_version(client)
    except ValueError:
        problem = f"client {client!r} is not a version such as 1.2.3"
        raise RefusedError(ErrorCode.PROTOCOL_INVALID, problem) from None
    if version < parse_version(settings.MINIMUM_CLIENT_VERSION):
        raise RefusedError(
            ErrorCode.CLIENT_TOO_OLD,
            f"client {client}, this coordinator needs {settings.MINIMUM_CLIENT_VERSION} or newer",
        )
