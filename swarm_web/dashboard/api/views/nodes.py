"""Nodes, one of them, and its results."""

from functools import partial
from typing import Annotated, Any

from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Router
from pydantic import Field

from judge.selectors import results_of_node
from swarm_web.dashboard.api.bodies.nodes import describe_item, describe_node
from swarm_web.dashboard.api.bodies.rounds import describe_score
from swarm_web.dashboard.api.paging import Cursor, Limit, Name, Number, read_cursor, read_page
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.nodes import NodeOut, NodesOut
from swarm_web.dashboard.api.schemas.rounds import ScoresOut
from swarm_web.dashboard.reports.node import read_report
from swarm_web.nodes.models import Node

router = Router(tags=["nodes"])

NodePath = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9_\-]+$",
        description="The node's name.",
        json_schema_extra={"example": "amber-quiet-heron"},
    ),
]
Search = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9_\-]*$",
        description="The beginning of the names to list; empty for all.",
    ),
]


@read(router, "/nodes", NodesOut)
def list_nodes(
    request: HttpRequest, search: Search = "", cursor: Cursor = "", limit: Limit = 100
) -> dict[str, Any]:
    """List all nodes that ever joined, by name."""
    nodes = Node.objects.filter(name__startswith=search).order_by("name")
    if (after := read_cursor(cursor, tuple[Name])) is not None:
        nodes = nodes.filter(name__gt=after[0])
    describe = partial(describe_item, now=timezone.now())
    return read_page(nodes, limit=limit, key=lambda node: [node.name], describe=describe)


@read(router, "/nodes/{name}", NodeOut)
def get_node(request: HttpRequest, name: NodePath) -> dict[str, Any]:
    """Show one node; the figures are of the season that runs or ran last."""
    node = get_object_or_404(Node, name=name)
    return describe_node(read_report(node, now=timezone.now()))


@read(router, "/nodes/{name}/scores", ScoresOut)
def list_scores_of_node(
    request: HttpRequest, name: NodePath, cursor: Cursor = "", limit: Limit = 100
) -> dict[str, Any]:
    """List a node's results in all closed rounds of all seasons, newest round first."""
    scores = results_of_node(get_object_or_404(Node, name=name))
    if (after := read_cursor(cursor, tuple[Number])) is not None:
        scores = scores.filter(round__number__lt=after[0])
    return read_page(
        scores, limit=limit, key=lambda score: [score.round.number], describe=describe_score
    )
