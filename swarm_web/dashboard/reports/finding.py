"""Find me: on which page of the leaderboard a node stands, or why on none."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from judge.models import Season, Standing
from judge.selectors import shown_season, standings_in
from swarm_web.dashboard.reports.board import BoardQuery
from swarm_web.leaderboard import find_page
from swarm_web.nodes.models import Node


@dataclass(frozen=True)
class Finding:
    """A node that was looked for: the place after which its page begins, or the `problem`.

    `exists` tells whether there is such a node at all, so that its own page can be offered.
    """

    name: str
    after: int | None
    problem: str = ""
    exists: bool = True


def find_node(query: BoardQuery) -> Finding | None:
    """Look for the node that a query asks for; None if it asks for none."""
    if not query.find:
        return None
    node = Node.objects.filter(name__in={query.find, query.find.lower()}).first()
    if node is None:
        return Finding(
            query.find,
            after=None,
            problem=_(
                "No node has this name. Names have a hyphen between their words, such as "
                "amber-quiet-heron; “Name contains” also finds a part of a name."
            ),
            exists=False,
        )
    season = shown_season()
    standing = _standing_of(node, season, query.window) if season else None
    if standing is None:
        return Finding(
            node.name, after=None, problem=_("It has not been judged in this window yet.")
        )
    after = find_page(standing, filters=query.filters)
    return Finding(node.name, after, problem="" if after is not None else _say_why(standing))


def _standing_of(node: Node, season: Season, window: str) -> Standing | None:
    return standings_in(season, window).filter(node=node).select_related("season").first()


def _say_why(standing: Standing) -> str:
    """Say why a node with a score is on no page of the query."""
    if standing.remark == Standing.Remark.QUARANTINED:
        return _("The operator quarantined it: it is judged but not listed.")
    if standing.remark == Standing.Remark.BASE:
        return _("It is an untrained model. Choose the arm “untrained” to list it.")
    return _("It is on the leaderboard, but your filters exclude it.")
