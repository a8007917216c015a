"""Admin of clients' requests for tokens: they can be deleted, but not added or edited."""

from django.contrib import admin

from swarm_web.core.unedited_admin import UneditedAdmin
from swarm_web.joining.models import JoinRequest


@admin.register(JoinRequest)
class JoinRequestAdmin(UneditedAdmin[JoinRequest]):
    """Admin list of requests, with the client's network and the decision."""

    list_display = ["created_at", "network", "decision", "anonymous", "claimed", "node"]
    list_filter = ["decision", "anonymous"]
    search_fields = ["network", "node__name"]
