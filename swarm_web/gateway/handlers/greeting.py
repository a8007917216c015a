"""The first message of a connection."""

from datetime import datetime

from channels.db import database_sync_to_async
from django.conf import settings

from judge.models import Season
from judge.selectors import describe_season, minimum_client
from judge.services.receipts import Signer
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Hello, Welcome
from swarm_protocol.version import PROTOCOL_VERSION, parse_version
from swarm_web.gateway.arms import assign_arm
from swarm_web.gateway.handlers.season import read_round
from swarm_web.gateway.session import Session
from swarm_web.nodes.models import Node
from swarm_web.nodes.services import bind_key, introduce

Version = tuple[int, ...]


async def greet(session: Session, hello: Hello) -> Welcome:
    """Introduce the node and tell it the season's rules, its arm and the round."""
    if session.greeted:
        raise RefusedError(ErrorCode.PROTOCOL_HELLO, "this connection has said hello already")
    season = await session.shared.season.get()
    client = _read_client(hello.client)
    _check_client(hello.client, client, season)
    now = session.clock()
    session.wish = hello.arm
    await database_sync_to_async(introduce)(session.node, hello, now=now)
    session.signer = await database_sync_to_async(_read_signer)(session.node, hello, now=now)
    welcome = Welcome(
        reply_to=hello.id,
        protocol=PROTOCOL_VERSION,
        server=settings.SITE_NAME,
        node=session.node.name,
        arm=await assign_arm(session, season) if season else hello.arm,
        now=now.isoformat(),
        season=describe_season(season) if season else None,
        round=await read_round(season),
        upgrade=_announce_minimum(client, season),
        logprobs=True,
        provenance=True,
        declarations=True,
        return_within=settings.GATEWAY_RETURN_WITHIN_S,
        chain=await session.shared.chain.get(),
    )
    # Last: a hello that failed may be said again.
    session.greeted = True
    return welcome


def _read_signer(node: Node, hello: Hello, *, now: datetime) -> Signer | None:
    if hello.key is None:
        return None
    key = bind_key(node, hello.key, now=now)
    return Signer(node=node.name, key_id=key.pk, public=key.public)


def _read_client(client: str) -> Version:
    """Return the client's version. Raises RefusedError."""
    try:
        return parse_version(client)
    except ValueError:
        problem = f"client {client!r} is not a version such as 1.2.3"
        raise RefusedError(ErrorCode.PROTOCOL_INVALID, problem) from None


def _check_client(client: str, version: Version, season: Season | None) -> None:
    """Raise RefusedError when the client's version is no longer served."""
    minimum = minimum_client(season)
    if version < parse_version(minimum):
        raise RefusedError(
            ErrorCode.CLIENT_TOO_OLD,
            f"client {client}, this coordinator needs {minimum} or newer",
            # Newer clients know better: how they were installed.
            fix=f"Update the client with the line of {settings.SITE_URL}/join/.",
        )


def _announce_minimum(version: Version, season: Season | None) -> str | None:
    """Return the version that will be needed soon, if the client does not have it yet."""
    coming = season.next_minimum_client if season else ""
    return coming if coming and version < parse_version(coming) else None
