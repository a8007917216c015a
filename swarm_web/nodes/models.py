"""A node: one running client with one policy model."""

import secrets
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from django.conf import settings
from django.db import models

from swarm_web.nodes.titles import MAX_LENGTH, validate_title

# A connected node is touched every 15 s (gateway.roster); after three missed touches it counts as
# disconnected.
PRESENCE_TIMEOUT = timedelta(seconds=45)
# The pattern that Django's validate_slug and the path converter `slug` accept.
_SLUG = r"^[-a-zA-Z0-9_]+$"
# A prefix instead of a token's SHA-256: no token has such a hash.
_REVOKED = "revoked "


def node_path(name: str) -> str:
    """Return the path of a node's page, with the name percent-encoded.

    Unlike Django's `reverse`, it also accepts a name that is not a slug.
    """
    return f"/nodes/{quote(name, safe='')}/"


class NodeQuerySet(models.QuerySet["Node"]):
    """QuerySet of nodes."""

    def seen_recently(self, *, now: datetime) -> "NodeQuerySet":
        """Filter to nodes seen within PRESENCE_TIMEOUT: connected now, or perhaps reconnecting."""
        return self.filter(last_seen__gt=now - PRESENCE_TIMEOUT)

    def connected(self, *, now: datetime) -> "NodeQuerySet":
        """Filter to nodes seen within PRESENCE_TIMEOUT that did not leave afterwards."""
        recent = self.seen_recently(now=now)
        return recent.filter(models.Q(left_at=None) | models.Q(left_at__lt=models.F("last_seen")))


class Node(models.Model):
    """A node, identified by its token. What the node says about its model is not verified."""

    class Arm(models.TextChoices):
        """How the node trains: with rollouts of others, without them, or not at all."""

        SWARM = "swarm"
        ISOLATED = "isolated"
        BASE = "base"

    name = models.SlugField(max_length=64, unique=True)
    title = models.CharField(
        max_length=MAX_LENGTH,
        blank=True,
        default="",
        db_default="",
        validators=[validate_title],
        help_text="What pages call the node, chosen by its owner; its name never changes.",
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL
    )
    token_hash = models.CharField(max_length=64, unique=True, editable=False)
    model = models.CharField(max_length=200, blank=True)
    parameters = models.BigIntegerField(default=0)
    tokenizer = models.CharField(max_length=200, blank=True)
    arm = models.CharField(max_length=16, choices=Arm, default=Arm.SWARM)
    client_version = models.CharField(max_length=200, blank=True)
    hardware = models.JSONField[dict[str, Any]](
        default=dict,
        blank=True,
        editable=False,
        help_text="Device name and bytes of memory, empty unless the owner chose to share them.",
    )
    blocked = models.BooleanField(
        default=False, help_text="A blocked node's token is refused; its data stays."
    )
    quarantined = models.BooleanField(
        default=False,
        editable=False,
        help_text="A quarantined node is judged as ever, but not ranked; its data stays.",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen = models.DateTimeField(null=True, blank=True, db_index=True)
    left_at = models.DateTimeField(null=True, blank=True)
    said_goodbye = models.BooleanField(
        default=False,
        editable=False,
        help_text="The client ended its latest connection itself, because it was stopped.",
    )

    objects = NodeQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(name__regex=_SLUG), name="node_name_is_a_slug"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the path of the node's page."""
        return node_path(self.name)

    @property
    def shown_name(self) -> str:
        """The name that pages show: the node's title, or its name if it has no title."""
        return self.title or self.name

    @property
    def party(self) -> str:
        """The party of the node: for example `owner 7`, or `node 12` if it has no owner."""
        return f"node {self.pk}" if self.owner_id is None else f"owner {self.owner_id}"

    @property
    def is_revoked(self) -> bool:
        """Whether no token is valid for the node."""
        return self.token_hash.startswith(_REVOKED)

    @staticmethod
    def revoked_hash() -> str:
        """Return a value for the `token_hash` of a node that has no valid token.

        Each call returns a different value.
        """
        return f"{_REVOKED}{secrets.token_hex(16)}"

    def is_connected(self, *, now: datetime) -> bool:
        """Return whether the node was seen within PRESENCE_TIMEOUT and did not leave afterwards."""
        if self.last_seen is None or self.last_seen <= now - PRESENCE_TIMEOUT:
            return False
        return self.left_at is None or self.left_at < self.last_seen


class NodeKey(models.Model):
    """A public key with which a node signs its answers.

    A key is deleted only together with its node, because keys are evidence: if a node signs with a
    new key, somebody else may have the node's token.
    """

    node = models.ForeignKey(Node, on_delete=models.CASCADE, related_name="keys", db_index=False)
    public = models.CharField(max_length=64, help_text="Ed25519, in hex.")
    first_seen = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["node", "public"], name="one_key_of_a_node"),
        ]

    def __str__(self) -> str:
        return f"{self.public[:16]}… of {self.node}"
