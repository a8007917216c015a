"""The arm of a connected node, requested from the judge once per connection and season."""

from channels.db import database_sync_to_async

from judge.models import Season
from judge.services.seasons import enrol
from swarm_web.gateway.session import Session
from swarm_web.nodes.models import Node


async def assign_arm(session: Session, season: Season) -> str:
    """Return the node's arm in the season.

    If the season began after the node's hello, the arm is assigned and stored first.
    """
    if session.season_id != season.pk:
        await database_sync_to_async(_enrol)(session, season)
        session.season_id = season.pk
    return session.node.arm


def _enrol(session: Session, season: Season) -> None:
    """Record the node's arm in the season, and copy it to `Node.arm`, which pages read."""
    arm = enrol(session.node, season, preferred=session.preferred_arm)
    if session.node.arm != arm:
        session.node.arm = arm
        Node.objects.filter(pk=session.node.pk).update(arm=arm)
