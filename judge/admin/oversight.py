"""Admin of flags, which the operator reviews, and of rulings, the operator's recorded decisions."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from judge.admin.confirmation import DecisionDetails, decision
from judge.admin.nodes import OUT_OF_THE_RANKS
from judge.admin.records import RecordAdmin
from judge.models import Flag, Ruling
from judge.services.oversight import dismiss_flag, quarantine_node

# ---- decisions


@decision(
    "Quarantine the node",
    permission="rule",
    title="Quarantine the node",
    effects=["The node of each flag will be removed from the ranks at once.", OUT_OF_THE_RANKS],
    done="The node is quarantined, and the leaderboard is updated ({}).",
)
def quarantine(flag: Flag, details: DecisionDetails) -> str | None:
    """Quarantine the node of a flag, and uphold the flag if it is open.

    Returns None, or why nothing changed.
    """
    if quarantine_node(flag.node, **details, flag=flag):
        return None
    return f"{flag.node} is already quarantined"


@decision(
    "Quarantine both nodes",
    permission="rule",
    title="Quarantine both nodes",
    effects=["Both nodes of each flag will be removed from the ranks at once.", OUT_OF_THE_RANKS],
    done="Both nodes are quarantined, and the leaderboard is updated ({}).",
)
def quarantine_both(flag: Flag, details: DecisionDetails) -> str | None:
    """Quarantine the one or two nodes of a flag, and uphold the flag if it is open.

    Returns None, or why nothing changed.
    """
    nodes = [flag.node] if flag.other is None else [flag.node, flag.other]
    taken = [quarantine_node(node, **details, flag=flag) for node in nodes]
    return None if any(taken) else "all its nodes are already quarantined"


@decision(
    "Dismiss: reviewed and harmless",
    permission="rule",
    title="Dismiss",
    effects=["The flags stay on record as harmless. No score or rank changes."],
    done="Dismissed: {}.",
)
def dismiss(flag: Flag, details: DecisionDetails) -> str | None:
    """Dismiss a flag; return None, or why nothing changed."""
    if dismiss_flag(flag, **details):
        return None
    return f"it is already {flag.get_state_display().lower()}"


# ---- flags


class StateFilter(admin.SimpleListFilter):
    """Filter by state; open flags are the default."""

    title = "state"
    parameter_name = "state"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Flag]
    ) -> list[tuple[str, str]]:
        """Return the choices besides the default, as pairs of value and label."""
        decided = [Flag.State.UPHELD, Flag.State.DISMISSED]
        return [*((state.value, str(state.label)) for state in decided), ("all", "All")]

    def choices(self, changelist: ChangeList) -> Iterator[Any]:
        """Label the default choice "Open" instead of Django's "All"."""
        first, *others = super().choices(changelist)
        yield {**first, "display": Flag.State.OPEN.label}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Flag]) -> QuerySet[Flag]:
        """Return the flags in the selected state."""
        if self.value() == "all":
            return queryset
        return queryset.filter(state=self.value() or Flag.State.OPEN)


class NodeFilter(admin.SimpleListFilter):
    """Filter by a node that the flags are about, as either node; offered only while it is used.

    The admin of nodes links to it. The list's search finds parts of names.
    """

    title = "node"
    parameter_name = "about"

    def lookups(
        self, request: HttpRequest, model_admin: admin.ModelAdmin[Flag]
    ) -> list[tuple[str, str]]:
        """Return the node's name as the only choice; no choice if the filter is not used."""
        name = request.GET.get(self.parameter_name)
        return [(name, name)] if name else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Flag]) -> QuerySet[Flag]:
        """Return the flags about the node, or all flags if the filter is not used."""
        name = self.value()
        return queryset.filter(Q(node__name=name) | Q(other__name=name)) if name else queryset


@admin.register(Flag)
class FlagAdmin(RecordAdmin[Flag]):
    """Flags, newest first, by default only open ones; with actions to quarantine or dismiss."""

    list_display = ["what", "node", "finding", "p", "state", "other", "round"]
    list_filter = [StateFilter, NodeFilter, "kind", "round__season"]
    list_select_related = ["node", "other", "round"]
    search_fields = ["node__name", "other__name", "round__number__exact"]
    readonly_fields = ["p"]
    exclude = ["p_adjusted"]
    actions = [quarantine, quarantine_both, dismiss]

    @admin.display(description="kind", ordering="kind")
    def what(self, obj: Flag) -> str:
        """Show the kind in one word; the list's filter shows the kind's full description."""
        return obj.kind

    @admin.display(description="finding")
    def finding(self, obj: Flag) -> SafeString:
        """Show the finding in a column wide enough for a sentence."""
        return format_html('<div style="min-width: 22rem">{}</div>', obj.text)

    @admin.display(description="adjusted p", ordering="p_adjusted")
    def p(self, obj: Flag) -> str:
        """Show the p-value, adjusted by Holm's method for all tested nodes or all pairs."""
        return f"{obj.p_adjusted:.2g}"


# ---- rulings


@admin.register(Ruling)
class RulingAdmin(RecordAdmin[Ruling]):
    """Admin of the rulings, which show who decided what, when and why."""

    list_display = ["made_at", "actor", "what", "round", "node", "reason", "changes"]
    list_filter = ["action", "made_at"]
    list_select_related = ["round", "node", "actor"]
    search_fields = ["node__name", "round__number__exact", "reason"]

    @admin.display(description="action", ordering="action")
    def what(self, obj: Ruling) -> str:
        """Show the action in one word; the list's filter shows the action's full description."""
        return obj.action
