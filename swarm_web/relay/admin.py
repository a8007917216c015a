"""Contributions and archived rollouts in the operator's admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from swarm_web.relay.models import ArchivedRollout, Contribution
from swarm_web.relay.services import restore_declarations


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
    actions = ["restore"]

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
