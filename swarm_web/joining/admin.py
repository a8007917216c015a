"""Admin of clients' requests for tokens: they can be deleted, but not added or edited."""

from django.contrib import admin
from django.http import HttpRequest

from swarm_web.joining.models import JoinRequest


@admin.register(JoinRequest)
class JoinRequestAdmin(admin.ModelAdmin[JoinRequest]):
    """Lists requests with network and decision."""

    list_display = ["created_at", "network", "decision", "anonymous", "claimed", "node"]
    list_filter = ["decision", "anonymous"]
    search_fields = ["network", "node__name"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Requests are created by clients only."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: JoinRequest | None = None) -> bool:
        """Only the person with the code decides."""
        return False
