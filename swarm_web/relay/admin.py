"""Contributions and archived rollouts in the operator's admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from swarm_web.relay.conduct import Level
from swarm_web.relay.models import ArchivedRollout, Conduct, Contribution
from swarm_web.relay.services import restore_declarations, set_by_operator

# Whoever may restore declarations may decide what is handed out.
_MAY = ["restore"]


@admin.register(Contribution)
class ContributionAdmin(admin.ModelAdmin[Contribution]):
    """See who gave and took what. Counters are counted, never typed."""

    list_display = [
        "node",
        "season",
        "step",
        "published",
        "rejected",
        "delivered",
        "external_used",
        "used_by_others",
        "declared_checked",
        "declared_false",
        "declarations_lapsed_at",
        "training_reward",
        "updated_at",
    ]
    list_filter = [
        *("season", "node__arm"),
        ("declarations_lapsed_at", admin.EmptyFieldListFilter),
    ]
    list_select_related = ["node", "season"]
    search_fields = ["node__name"]
    actions = ["restore", "withhold", "hand_out", "exempt"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a contribution by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Contribution | None = None) -> bool:
        """Nobody edits one."""
        return False

    def has_restore_permission(self, request: HttpRequest) -> bool:
        """Let those restore declarations who might edit contributions, if anybody might."""
        return request.user.has_perm("relay.change_contribution")

    @admin.action(description="Let declarations count again", permissions=["restore"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Let the declarations of the chosen nodes count again."""
        restored = restore_declarations(queryset)
        messages.info(request, f"Declarations of {restored} nodes count again within seconds.")

    @admin.action(description="Withhold from other nodes, until you decide again", permissions=_MAY)
    def withhold(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Hand out nothing of the chosen nodes."""
        self._set(request, queryset, level=Level.WITHHELD, pinned=True)

    @admin.action(description="Hand out in full, and let the rules go on", permissions=_MAY)
    def hand_out(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Hand out the chosen nodes' rollouts like those of others, with nothing found before."""
        self._set(request, queryset, level=Level.FULL, pinned=False)

    @admin.action(description="Hand out in full, whatever the rules find", permissions=_MAY)
    def exempt(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Hand out the chosen nodes' rollouts like those of others, for good."""
        self._set(request, queryset, level=Level.FULL, pinned=True)

    def _set(
        self, request: HttpRequest, parts: QuerySet[Contribution], *, level: Level, pinned: bool
    ) -> None:
        number = set_by_operator(parts, level=level, pinned=pinned, now=timezone.now())
        for part in parts:
            self.log_change(request, part, f"Hand-out: {level}, pinned: {pinned}.")
        messages.info(request, f"Done for {number} nodes. Web processes follow within seconds.")


@admin.register(Conduct)
class ConductAdmin(admin.ModelAdmin[Conduct]):
    """See whose rollouts are handed out less, and why. Contributions have the actions."""

    list_display = [
        *("node", "season", "level", "charge", "bad", "total", "since", "until", "pinned"),
        *("findings", "refused", "copies", "hurried", "floods", "checked", "worthless"),
    ]
    list_filter = ["level", "charge", "pinned", "season"]
    list_select_related = ["node", "season"]
    search_fields = ["node__name"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds evidence by hand."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Conduct | None = None) -> bool:
        """Nobody edits it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Conduct | None = None) -> bool:
        """Nobody deletes it: it goes with its node or season."""
        return False


@admin.register(ArchivedRollout)
class ArchivedRolloutAdmin(admin.ModelAdmin[ArchivedRollout]):
    """See what was archived, and delete what should not stand on a public page."""

    list_display = [
        "rollout",
        "author",
        "season",
        "dataset",
        "published_at",
        "solved",
        "total",
        "learned_by",
        "failure",
    ]
    list_filter = ["season", "failure"]
    list_select_related = ["author", "season"]
    search_fields = ["author__name", "rollout"]
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a rollout by hand."""
        return False

    def has_change_permission(
        self, request: HttpRequest, obj: ArchivedRollout | None = None
    ) -> bool:
        """Nobody edits one."""
        return False
