"""Nodes in the operator's admin."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from swarm_web.nodes.models import Node
from swarm_web.nodes.services import create_node, end_connection, rotate_token


@admin.register(Node)
class NodeAdmin(admin.ModelAdmin[Node]):
    """Admin of nodes: view, create, block, replace tokens; what a client reports is read-only."""

    list_display = [
        "name",
        "quarantined",
        "blocked",
        "arm",
        "model",
        "owner",
        "client_version",
        "last_seen",
    ]
    list_filter = ["arm", "blocked", "quarantined", "client_version"]
    search_fields = ["name", "title", "model", "owner__username"]
    readonly_fields = [
        "model",
        "parameters",
        "tokenizer",
        "client_version",
        "hardware",
        "created_at",
        "last_seen",
        "left_at",
        "quarantined",
    ]
    autocomplete_fields = ["owner"]

    def get_readonly_fields(self, request: HttpRequest, obj: Node | None = None) -> list[str]:
        """Return the read-only fields; an existing node's name and arm are among them.

        The name must not change, because the node's signatures and the chain contain it. The arm
        is set when the node connects.
        """
        return [*self.readonly_fields, *(["name", "arm"] if obj is not None else [])]

    actions = ["give_new_token"]

    def save_model(self, request: HttpRequest, obj: Node, form: object, change: bool) -> None:
        """Create a new node, or save an existing one.

        A new node gets a token, which is shown once. If an existing node is blocked, its connection
        ends.
        """
        if change:
            super().save_model(request, obj, form, change)
            end_connection(obj)
            return
        node, token = create_node(name=obj.name, arm=obj.arm, owner=obj.owner, title=obj.title)
        Node.objects.filter(pk=node.pk).update(blocked=obj.blocked)
        obj.pk, obj.token_hash, obj.created_at = node.pk, node.token_hash, node.created_at
        _show_token(request, node, token)

    @admin.action(
        description="Give a new token (the old one stops working)", permissions=["change"]
    )
    def give_new_token(self, request: HttpRequest, queryset: QuerySet[Node]) -> None:
        """Replace the tokens of the chosen nodes, and show each new token once."""
        for node in queryset:
            _show_token(request, node, rotate_token(node))


def _show_token(request: HttpRequest, node: Node, token: str) -> None:
    messages.success(request, f"Token of {node.name}, shown only now: {token}")
