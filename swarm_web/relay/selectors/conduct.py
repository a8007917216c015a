"""Nodes with a lowered hand-out weight, and the reason."""

from django.db.models import Count

from swarm_web.nodes.models import Node
from swarm_web.relay.models import Conduct


def find_conduct(node: Node, *, season_id: int) -> Conduct | None:
    """Return a node's conduct in a season; None if nothing is recorded about it."""
    return Conduct.objects.filter(node=node, season=season_id).first()


def held_nodes(season_id: int, *, limit: int) -> list[Conduct]:
    """Return the conduct of up to `limit` nodes whose hand-out weight is below full.

    The node whose level was changed or set last comes first. `node` is loaded.
    """
    held = Conduct.objects.filter(season=season_id).exclude(level=Conduct.Level.FULL)
    return list(held.select_related("node").order_by("-since", "pk")[:limit])


def count_held(season_id: int) -> dict[tuple[str, str], int]:
    """Return the number of nodes whose hand-out weight is below full, by (charge, level).

    The keys are values of `Conduct.Charge` and `Conduct.Level`; pairs without nodes are left out.
    """
    held = Conduct.objects.filter(season=season_id).exclude(level=Conduct.Level.FULL)
    counted = held.values_list("charge", "level").annotate(nodes=Count("pk"))
    return {(charge, level): nodes for charge, level, nodes in counted.order_by("charge", "level")}
