"""Nodes' contributions and conduct, and archived rollouts, in the operator's admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from swarm_web.core.unedited_admin import UneditedAdmin
from swarm_web.relay.conduct import Level
from swarm_web.relay.models import ArchivedRollout, Conduct, Contribution
from swarm_web.relay.services.conduct import set_level
from swarm_web.relay.services.declarations import restore_declarations

# Permission to restore declarations includes permission to set hand-out levels.
_PERMISSIONS = ["restore"]


@admin.register(Contribution)
class ContributionAdmin(UneditedAdmin[Contribution]):
    """Admin of contributions, with actions on the nodes' declarations and hand-out weights."""

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

    def has_restore_permission(self, request: HttpRequest) -> bool:
        """Allow actions with permission `restore` to users with the model's change permission."""
        return request.user.has_perm("relay.change_contribution")

    @admin.action(description="Accept informative declarations again", permissions=["restore"])
    def restore(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Let lapsed declarations of the selected nodes count again."""
        restored = restore_declarations(queryset)
        messages.info(request, f"Declarations of {restored} nodes count again within seconds.")

    @admin.action(
        description="Withhold rollouts until an operator lifts it", permissions=_PERMISSIONS
    )
    def withhold(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Stop handing out rollouts of the selected nodes until an operator changes that."""
        self._set(request, queryset, level=Level.WITHHELD, pinned=True)

    @admin.action(
        description="Deliver in full; the automatic rules still apply", permissions=_PERMISSIONS
    )
    def hand_out(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Restore the full hand-out weight of the selected nodes and reset their findings."""
        self._set(request, queryset, level=Level.FULL, pinned=False)

    @admin.action(
        description="Deliver in full, exempt from the automatic rules", permissions=_PERMISSIONS
    )
    def exempt(self, request: HttpRequest, queryset: QuerySet[Contribution]) -> None:
        """Hand out rollouts of the selected nodes in full, whatever the conduct rules find."""
        self._set(request, queryset, level=Level.FULL, pinned=True)

    def _set(
        self,
        request: HttpRequest,
        contributions: QuerySet[Contribution],
        *,
        level: Level,
        pinned: bool,
    ) -> None:
        number = set_level(contributions, level=level, pinned=pinned, now=timezone.now())
        for contribution in contributions:
            self.log_change(request, contribution, f"Hand-out: {level}, pinned: {pinned}.")
        messages.info(request, f"Updated {number} nodes. Web processes apply this within seconds.")


@admin.register(Conduct)
class ConductAdmin(UneditedAdmin[Conduct]):
    """Lists nodes' conduct and hand-out levels; `ContributionAdmin` can change the levels."""

    list_display = [
        *("node", "season", "level", "charge", "bad", "total", "since", "until", "pinned"),
        *("findings", "refused", "copies", "hurried", "floods", "checked", "worthless"),
    ]
    list_filter = ["level", "charge", "pinned", "season"]
    list_select_related = ["node", "season"]
    search_fields = ["node__name"]

    def has_delete_permission(self, request: HttpRequest, obj: Conduct | None = None) -> bool:
        """Forbid deleting evidence, except with its node or season on their own admin pages."""
        page = request.resolver_match
        is_own = page is not None and str(page.url_name).startswith("relay_conduct_")
        return not is_own and super().has_delete_permission(request, obj)


@admin.register(ArchivedRollout)
class ArchivedRolloutAdmin(UneditedAdmin[ArchivedRollout]):
    """Lists archived rollouts; those that should not be public can be deleted."""

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
