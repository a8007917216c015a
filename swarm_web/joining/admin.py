"""Clients that wait for their tokens, for operators to look at."""

from django.contrib import admin
from django.http import HttpRequest

from swarm_web.joining.models import JoinRequest


@admin.register(JoinRequest)
class JoinRequestAdmin(admin.ModelAdmin[JoinRequest]):
    """See who asked for a token, from where, and what was decided."""

    list_display = ["created_at", "network", "decision", "anonymous", "claimed", "node"]
    list_filter = ["decision", "anonymous"]
    search_fields = ["network", "node__name"]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Nobody adds a request by hand: clients ask."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: JoinRequest | None = None) -> bool:
        """Only the person with the code decides."""
        return False
