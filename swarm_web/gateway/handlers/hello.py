"""The handler of a node's hello, the first message of a connection."""

from typing import cast

from django.conf import settings

from judge.models import Season
from judge.selectors.seasons import describe_season, minimum_client
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import Arm, Hello, Welcome
from swarm_protocol.version import PROTOCOL_VERSION, parse_version
from swarm_web.gateway.registration import NodeHello
from swarm_web.gateway.session import Session

Version = tuple[int, ...]


async def handle_hello(session: Session, hello: Hello) -> Welcome:
    """Register the node; return its arm, the season's rules and the current round.

    Raises RefusedError for a second hello, and if the version or the key in the hello is refused.
    """
    if session.greeted:
        raise RefusedError(ErrorCode.PROTOCOL_HELLO, "this connection has said hello already")
    season = await session.shared.season.get()
    client = _read_client(hello.client)
    _check_client(hello.client, client, season)
    now = session.clock()
    session.preferred_arm = hello.arm
    session.signer = await session.shared.hellos.do(NodeHello(session.node, hello, now, season))
    session.season_id = season.pk if season else None
    welcome = Welcome(
        reply_to=hello.id,
        protocol=PROTOCOL_VERSION,
        server=settings.SITE_NAME,
        node=session.node.name,
        arm=cast("Arm", session.node.arm),
        now=now.isoformat(),
        season=describe_season(season) if season else None,
        round=await session.shared.round.get(),
        upgrade=_announce_minimum(client, season),
        logprobs=True,
        provenance=True,
        declarations=True,
        return_within=settings.GATEWAY_RETURN_WITHIN_S,
        chain=await session.shared.chain.get(),
    )
    # Last, so that a failed hello can be repeated.
    session.greeted = True
    return welcome


def _read_client(client: str) -> Version:
    """Return the parsed version. Raises RefusedError if `client` is not a version like 1.2.3."""
    try:
        return parse_version(client)
    except ValueError:
        problem = f"client {client!r} is not a version such as 1.2.3"
        raise RefusedError(ErrorCode.PROTOCOL_INVALID, problem) from None


def _check_client(client: str, version: Version, season: Season | None) -> None:
    """Raise RefusedError if `version` is older than `minimum_client(season)`."""
    minimum = minimum_client(season)
    if version < parse_version(minimum):
        raise RefusedError(
            ErrorCode.CLIENT_TOO_OLD,
            f"client {client}, this coordinator needs {minimum} or newer",
            # Newer clients replace this, because they know how they were installed.
            fix=f"Update the client with the line of {settings.SITE_URL}/join/.",
        )


def _announce_minimum(version: Version, season: Season | None) -> str | None:
    """Return the season's next minimum version if `version` is older than that, else None."""
    coming = season.next_minimum_client if season else ""
    return coming if coming and version < parse_version(coming) else None
