"""Admin of nodes with the judge's data: flags, quarantine and release."""

from django.contrib import admin
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from judge.admin.confirmation import DecisionDetails, decision
from judge.admin.records import list_url, show_rows
from judge.models import Flag, Ruling, Seat
from judge.services.oversight import quarantine_node, release_node
from swarm_web.nodes.admin import NodeAdmin
from swarm_web.nodes.models import Node

OUT_OF_THE_RANKS = (
    "Such a node is not ranked and does not count in the comparison of the arms. It is still "
    "judged, its data stays, and it can be released."
)


@decision(
    "Quarantine: remove from the ranks",
    permission="change",
    title="Quarantine",
    effects=["These nodes will be removed from the ranks at once.", OUT_OF_THE_RANKS],
    done="Quarantined {}; the leaderboard is updated.",
)
def quarantine(node: Node, details: DecisionDetails) -> str | None:
    """Quarantine a node; return None, or why nothing changed."""
    return None if quarantine_node(node, **details) else "it is already quarantined"


@decision(
    "Release: return to the ranks",
    permission="change",
    title="Release",
    effects=[
        "These nodes will be ranked again at once and count in the comparison of the arms, with "
        "all scores from the time of the quarantine."
    ],
    done="Released {}; the leaderboard is updated.",
)
def release(node: Node, details: DecisionDetails) -> str | None:
    """Lift a node's quarantine; return None, or why nothing changed."""
    return None if release_node(node, **details) else "it is not quarantined"


# Replaces the node admin of swarm_web.nodes, which does not know the judge.
admin.site.unregister(Node)


@admin.register(Node)
class JudgedNodeAdmin(NodeAdmin):
    """Admin of nodes, with their flags and rulings, and actions to quarantine and release them."""

    list_display = ["name", "open_flags", *NodeAdmin.list_display[1:]]
    readonly_fields = [*NodeAdmin.readonly_fields, "open_flags", "rulings"]
    actions = [*NodeAdmin.actions, quarantine, release]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Node]:
        """Return the nodes, each with its number of open flags as `flagged`."""
        about = Flag.objects.filter(
            Q(node=OuterRef("pk")) | Q(other=OuterRef("pk")), state=Flag.State.OPEN
        )
        # A subquery, because joins with both relations would multiply rows.
        counted = about.order_by().values("state").annotate(count=Count("pk")).values("count")
        return super().get_queryset(request).annotate(flagged=Coalesce(Subquery(counted), 0))

    def has_delete_permission(self, request: HttpRequest, obj: Node | None = None) -> bool:
        """Forbid deleting a node that was ever seated in a round; it can be blocked instead."""
        deletable = obj is None or not Seat.objects.filter(node=obj).exists()
        return deletable and super().has_delete_permission(request, obj)

    @admin.display(description="open flags", ordering="flagged")
    def open_flags(self, obj: Node) -> SafeString:
        """Link to the node's flags, with the number of open ones."""
        flags = list_url(Flag, about=obj.name, state="all")
        return format_html('<a href="{}">{}</a>', flags, getattr(obj, "flagged", 0))

    @admin.display(description="rulings")
    def rulings(self, obj: Node) -> SafeString:
        """Show the rulings about the node."""
        rulings = Ruling.objects.filter(node=obj)
        url = list_url(Ruling, node__id__exact=obj.pk)
        return show_rows(rulings, lambda r: f"{r.get_action_display()}: {r.reason}", url=url)
