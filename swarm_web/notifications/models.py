"""Owners' notification channels, and the messages to them.

`Delivery` is the outbox. Its `key` names the event and is unique in a channel, so a channel gets at
most one message about an event, even if the event is detected twice. If a worker is killed before
it records the outcome of a message, the message is sent again with the same id.
"""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from judge.models import Round
from swarm_web.nodes.models import Node


class Failure(models.TextChoices):
    """Why an attempt to deliver failed; NONE if it did not fail."""

    NONE = "", ""
    UNRESOLVED = "unresolved", _("the host name could not be resolved")
    FORBIDDEN = "forbidden", _("the address is not public")
    UNREACHABLE = "unreachable", _("the connection failed")
    UNTRUSTED = "untrusted", _("the certificate is not valid for the host")
    TIMEOUT = "timeout", _("no response in time")
    GARBLED = "garbled", _("the response was not HTTP")
    REDIRECTED = "redirected", _("it redirected; redirects are not followed")
    STATUS = "status", _("it responded with an error")
    GONE = "gone", _("it responded 410 Gone")
    NO_ADDRESS = "no_address", _("the account has no confirmed e-mail address")
    MAIL = "mail", _("the mail server did not accept the message")
    INTERNAL = "internal", _("this site could not send the message")


class ChannelQuerySet(models.QuerySet["Channel"]):
    """QuerySet of channels."""

    def subscribed_to(self, event: str) -> "ChannelQuerySet":
        """Filter to enabled channels that report `event` and belong to an active account."""
        return self.filter(enabled=True, owner__is_active=True, events__contains=[event])


class Channel(models.Model):
    """A way to notify an owner: a webhook, the account's e-mail address, or an ntfy topic.

    `target` is the address, empty for e-mail. No attempt starts before `next_attempt_at`. Each
    attempt postpones this time when it starts, and again if it fails, so a receiver that is down
    delays only its own messages. `failures` counts the failed attempts since the last success, or
    since the channel was switched on. `failing_since` is the time of the first of these failures.
    `failed_at` and `failure` describe the latest failed attempt; switching the channel on clears
    `failure`. When a message about a round is queued, `round_told_at` becomes the closing time of
    this round.
    """

    class Kind(models.TextChoices):
        """The kind of transport."""

        WEBHOOK = "webhook", _("Webhook")
        EMAIL = "email", _("E-mail")
        NTFY = "ntfy", _("ntfy")

    class Event(models.TextChoices):
        """The events that an owner can choose."""

        NODE_SILENT = "node.silent", _("my node goes offline or comes back")
        ROUND_SCORED = "round.scored", _("a round is scored")
        CLIENT_REQUIRED = "client.required", _("a newer client is required")

    class Off(models.TextChoices):
        """Why a channel is switched off; NONE if it is on."""

        NONE = "", ""
        OWNER = "owner", _("you switched it off")
        UNSUBSCRIBED = "unsubscribed", _("someone used the unsubscribe link")
        FAILING = "failing", _("too many consecutive deliveries failed")
        GONE = "gone", _("the receiver responded 410 Gone")
        OPERATOR = "operator", _("the operator of this site switched it off")

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        related_name="channels",
        db_index=False,
    )
    kind = models.CharField(max_length=16, choices=Kind)
    target = models.CharField(
        max_length=500,
        blank=True,
        help_text="An address; empty for e-mail, which goes to the account's own.",
    )
    events = ArrayField(models.CharField(max_length=32, choices=Event), default=list)
    secret = models.CharField(max_length=80, blank=True, editable=False)
    enabled = models.BooleanField(default=True)
    off_because = models.CharField(max_length=16, choices=Off, blank=True, default=Off.NONE)
    created_at = models.DateTimeField()
    next_attempt_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    failure = models.CharField(max_length=16, choices=Failure, blank=True, default=Failure.NONE)
    round_told_at = models.DateTimeField(null=True, blank=True)

    objects = ChannelQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "kind", "target"], name="one_channel_a_target"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} of {self.owner}"

    @property
    def told(self) -> list[str]:
        """The labels of the events that the channel reports."""
        return [str(self.Event(event).label) for event in self.events if event in self.Event]


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """QuerySet of deliveries."""

    def waiting(self) -> "DeliveryQuerySet":
        """Filter to messages that are still to be sent."""
        return self.filter(state=Delivery.State.WAITING)


class Delivery(models.Model):
    """One message to one channel.

    `key` identifies the event in the channel. `data` is the content of the message, as a webhook
    receives it. `attempts` counts the started attempts. `failure` and `status` describe the latest
    attempt that ended. `ended_at` is when the message was sent, failed for good, or was dropped.
    """

    class Type(models.TextChoices):
        """What a message is about."""

        NODE_SILENT = "node.silent", _("node offline")
        NODE_BACK = "node.back", _("node back online")
        ROUND_SCORED = "round.scored", _("round scored")
        CLIENT_REQUIRED = "client.required", _("newer client required")
        TEST = "test", _("test")

    class State(models.TextChoices):
        """Whether the message was sent, and if not, why."""

        WAITING = "waiting", _("waiting")
        SENT = "sent", _("sent")
        FAILED = "failed", _("failed")
        DROPPED = "dropped", _("dropped: the channel was switched off")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    channel = models.ForeignKey(
        Channel, on_delete=models.CASCADE, related_name="deliveries", db_index=False
    )
    type = models.CharField(max_length=32, choices=Type)
    key = models.CharField(max_length=80)
    data = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    attempts = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    ended_at = models.DateTimeField(null=True)
    failure = models.CharField(max_length=16, choices=Failure, blank=True, default=Failure.NONE)
    status = models.PositiveSmallIntegerField(null=True, help_text="The HTTP status, if any.")

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["channel", "key"], name="one_delivery_an_event"),
        ]
        indexes = [
            models.Index(
                fields=["channel", "attempts", "created_at"],
                condition=Q(state="waiting"),
                name="waiting_deliveries",
            ),
            models.Index(fields=["channel", "-created_at"], name="deliveries_of_a_channel"),
            models.Index(fields=["created_at"], name="deliveries_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.channel_id}"


class NodeNews(models.Model):
    """Records that all messages about a node's silence are queued; deleted once the node is back.

    `silent_from` is the beginning of the silence: the node's `last_seen` at the time of queueing.
    """

    node = models.OneToOneField(Node, primary_key=True, on_delete=models.CASCADE, related_name="+")
    silent_from = models.DateTimeField()

    class Meta:
        verbose_name_plural = "node news"

    def __str__(self) -> str:
        return f"silence of {self.node}"


class RoundNews(models.Model):
    """Progress of queueing the messages about a closed round, in the order of channel ids.

    Channels with an id up to `last_channel` have been processed. `is_done` means that no channels
    are left.
    """

    round = models.OneToOneField(
        Round, primary_key=True, on_delete=models.CASCADE, related_name="+"
    )
    last_channel = models.BigIntegerField(default=0)
    is_done = models.BooleanField(default=False)

    class Meta:
        verbose_name_plural = "round news"

    def __str__(self) -> str:
        return f"news of {self.round}"
