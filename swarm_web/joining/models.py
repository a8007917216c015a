"""The stored requests of clients for a token or an owner."""

from datetime import datetime

from django.db import models

from swarm_web.joining.codes import show_user_code
from swarm_web.nodes.models import Node


class JoinRequest(models.Model):
    """A client's request for a token, or for an owner of its node; a person decides (RFC 8628).

    The device code is the client's secret, so only its hash is stored. A request for an anonymous
    node is approved from the start. In a request for an owner, `claimed` is the client's node,
    which keeps its token. In a request for a token, `node` is the node whose token the client gets,
    None until this node is chosen or created.
    """

    class Decision(models.TextChoices):
        """Whether the request was decided, and how."""

        WAITING = "waiting"
        APPROVED = "approved"
        DENIED = "denied"

    device_hash = models.CharField(max_length=64, unique=True, editable=False)
    user_code = models.CharField(max_length=8, unique=True, editable=False)
    network = models.CharField(max_length=64, help_text="The address that the client came from.")
    client_version = models.CharField(max_length=64, blank=True)
    model = models.CharField(max_length=200, blank=True)
    anonymous = models.BooleanField(default=False)
    claimed = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    decision = models.CharField(max_length=8, choices=Decision, default=Decision.WAITING)
    node = models.ForeignKey(
        Node, null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    # After the token was revoked or replaced, an earlier approval is void.
    replaces = models.CharField(
        max_length=64, editable=False, help_text="Hash of the token that the client's one replaces."
    )
    interval_s = models.PositiveSmallIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)
    asked_at = models.DateTimeField(null=True, help_text="When the client last asked for a token.")

    class Meta:
        indexes = [models.Index(fields=["network", "created_at"], name="requests_of_a_network")]

    def __str__(self) -> str:
        return show_user_code(self.user_code)

    def is_open(self, *, now: datetime) -> bool:
        """Return whether the request may still be decided."""
        return self.decision == self.Decision.WAITING and now < self.expires_at
