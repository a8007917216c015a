"""A node's counters of a season are changed in one statement, for every step of every node."""

from django.db.models import F, QuerySet
from django.db.models.functions import Now

from swarm_web.nodes.models import Node
from swarm_web.relay.models import Contribution


async def add_to_contribution(node: Node, season_id: int, **amounts: int) -> None:
    """Add to the node's counters, if there is anything to add."""
    changes = {name: F(name) + amount for name, amount in amounts.items() if amount}
    if changes:
        await change_contribution(node, season_id, **changes)


async def change_contribution(node: Node, season_id: int, **changes: object) -> None:
    """Update the node's contribution in one statement, after making it if it is missing."""
    rows = _contribution(node, season_id)
    if not await rows.aupdate(updated_at=Now(), **changes):
        await Contribution.objects.aget_or_create(node=node, season_id=season_id)
        await rows.aupdate(updated_at=Now(), **changes)


def _contribution(node: Node, season_id: int) -> QuerySet[Contribution]:
    return Contribution.objects.filter(node=node, season_id=season_id)
