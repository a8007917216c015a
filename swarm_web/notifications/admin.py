"""Admin of channels and deliveries: they can be deleted, but not added or edited.

A channel can also be switched off.
"""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone

from swarm_web.core.unedited_admin import UneditedAdmin
from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services.channels import switch_off


@admin.register(Channel)
class ChannelAdmin(UneditedAdmin[Channel]):
    """Lists channels with their latest failure; secrets are not shown."""

    list_display = [
        *("owner", "kind", "target", "enabled", "off_because"),
        *("failures", "failed_at", "failure"),
    ]
    list_filter = ["kind", "enabled", "off_because", "failure"]
    list_select_related = ["owner"]
    search_fields = ["owner__username", "target"]
    actions = ["switch_off"]

    def has_switch_off_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may change channels."""
        return request.user.has_perm("notifications.change_channel")

    @admin.action(
        description="Switch off (the owner cannot switch it on)", permissions=["switch_off"]
    )
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Channel]) -> None:
        """Switch the selected channels off and drop their waiting deliveries."""
        for channel in queryset:
            switch_off(channel, because=Channel.Off.OPERATOR, now=timezone.now())
        self.message_user(request, f"{len(queryset)} channels are switched off.")


@admin.register(Delivery)
class DeliveryAdmin(UneditedAdmin[Delivery]):
    """Lists deliveries with their latest failure."""

    list_display = [
        *("created_at", "channel", "type", "state", "attempts", "failure", "status", "ended_at"),
    ]
    list_filter = ["state", "type", "failure"]
    list_select_related = ["channel__owner"]
    search_fields = ["channel__owner__username"]
    show_full_result_count = False
