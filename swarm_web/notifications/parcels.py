"""Deliveries, prepared so that a thread can send them without reading the database."""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from http import HTTPStatus
from smtplib import SMTPException
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.core.mail import EmailMessage

from swarm_web.notifications.models import Channel, Delivery, Failure
from swarm_web.notifications.posting import PostError, post
from swarm_web.notifications.selectors import mail_address
from swarm_web.notifications.targets import NotificationTarget, TargetError, read_target, read_topic
from swarm_web.notifications.unsubscribing import unsubscribe_url
from swarm_web.notifications.webhook_signing import sign
from swarm_web.notifications.wording import compose_text

logger = logging.getLogger(__name__)

_CONTENT = {
    "Content-Type": "application/json; charset=utf-8",
    "User-Agent": "murmuration-notifications",
}
# ntfy's priorities: 3 is the default, 4 is high.
_ORDINARY, _URGENT = 3, 4
_TAGS = {
    Delivery.Type.NODE_SILENT: "warning",
    Delivery.Type.NODE_BACK: "white_check_mark",
    Delivery.Type.ROUND_SCORED: "bar_chart",
    Delivery.Type.CLIENT_REQUIRED: "arrow_up",
    Delivery.Type.TEST: "bell",
}


# What an attempt gave: the failure, empty for a success, and the HTTP status, None without one.
Result = tuple[str, int | None]


@dataclass(frozen=True)
class DeliveryOutcome:
    """The outcome of attempt number `attempt` to send the delivery with id `delivery`.

    `failure` is a value of `Failure`, empty for a success. `status` is the HTTP status, None if
    there was no HTTP response.
    """

    delivery: UUID
    attempt: int
    failure: str = Failure.NONE
    status: int | None = None


@dataclass(frozen=True)
class Parcel:
    """One attempt to send the delivery with id `delivery`; `attempt` counts from 1.

    `transport()` sends the message, which may take seconds, and returns (failure, status) as in
    `DeliveryOutcome`.
    """

    delivery: UUID
    attempt: int
    transport: Callable[[], Result]

    def send(self) -> DeliveryOutcome:
        """Send the message and return the outcome."""
        return self.end(*self.transport())

    def end(self, failure: str = Failure.NONE, status: int | None = None) -> DeliveryOutcome:
        """Return the outcome of this attempt: a success unless `failure` is given."""
        return DeliveryOutcome(self.delivery, self.attempt, failure, status)


def pack(delivery: Delivery, *, now: datetime) -> Parcel:
    """Return a parcel that sends a delivery, as attempt number `delivery.attempts`.

    `now` is the time in a webhook's signature. If the channel has no address, or its address is no
    longer allowed, or its message cannot be composed, sending the parcel fails. To save queries,
    load `delivery.channel.owner` beforehand.
    """
    try:
        match Channel.Kind(delivery.channel.kind):
            case Channel.Kind.WEBHOOK:
                transport = _pack_webhook(delivery, now=now)
            case Channel.Kind.NTFY:
                transport = _pack_ntfy(delivery)
            case Channel.Kind.EMAIL:
                transport = _pack_mail(delivery)
    except TargetError:
        # The address was valid when it was entered; the operator has changed the rules since.
        transport = partial(_fail, Failure.FORBIDDEN)
    except (LookupError, TypeError, ValueError):
        # For example, a newer version of the site queued it. Other parcels must not be lost.
        logger.exception("could not compose %s", delivery.pk)
        transport = partial(_fail, Failure.INTERNAL)
    return Parcel(delivery.pk, delivery.attempts, transport)


def _fail(failure: Failure) -> Result:
    return failure, None


def _post(target: NotificationTarget, body: bytes, headers: Mapping[str, str]) -> Result:
    """POST to a webhook or ntfy server; return a failure unless the status is 2xx."""
    private = settings.NOTIFICATION_PRIVATE_TARGETS
    try:
        status = post(target, body, headers={**_CONTENT, **headers}, private=private)
    except PostError as problem:
        return problem.failure, None
    if 200 <= status < 300:
        return Failure.NONE, status
    if status == HTTPStatus.GONE:
        return Failure.GONE, status
    return Failure.REDIRECTED if 300 <= status < 400 else Failure.STATUS, status


def _send_mail(message: EmailMessage) -> Result:
    """Send an e-mail; return `Failure.MAIL` if the mail server or the connection fails."""
    try:
        message.send()
    except (SMTPException, OSError, ValueError):
        return Failure.MAIL, None
    return Failure.NONE, None


def _pack_webhook(delivery: Delivery, *, now: datetime) -> Callable[[], Result]:
    body = json.dumps(
        {
            "type": delivery.type,
            "timestamp": delivery.created_at.isoformat(),
            "data": delivery.data,
        }
    ).encode()
    signature = sign(
        delivery.channel.secret,
        message_id=str(delivery.pk),
        timestamp=int(now.timestamp()),
        body=body,
    )
    private = settings.NOTIFICATION_PRIVATE_TARGETS
    target = read_target(delivery.channel.target, private=private)
    return partial(_post, target, body, signature)


def _pack_ntfy(delivery: Delivery) -> Callable[[], Result]:
    """Prepare a message for ntfy, and return the function that sends it.

    The message is sent as JSON, because ntfy's alternative, HTTP headers, allows ASCII only.
    """
    private = settings.NOTIFICATION_PRIVATE_TARGETS
    target, topic = read_topic(delivery.channel.target, private=private)
    message_text = compose_text(delivery)
    body = json.dumps(
        {
            "topic": topic,
            "title": message_text.title,
            "message": message_text.text,
            "priority": _URGENT if message_text.is_urgent else _ORDINARY,
            "tags": [_TAGS[Delivery.Type(delivery.type)]],
            "click": message_text.url,
        }
    ).encode()
    return partial(_post, target, body, {})


def _pack_mail(delivery: Delivery) -> Callable[[], Result]:
    channel = delivery.channel
    address = mail_address(channel.owner)
    if address is None:
        return partial(_fail, Failure.NO_ADDRESS)
    message_text, leave = compose_text(delivery), unsubscribe_url(channel)
    page = f"{settings.SITE_URL}/account/notifications/"
    footer = f"-- \nYour notifications: {page}\nUnsubscribe: {leave}\n"
    text = f"{message_text.text}\n\n{message_text.url}\n\n{footer}"
    message = EmailMessage(
        # A line break would end the header.
        subject=" ".join(message_text.title.split()),
        body=text,
        to=[address],
        headers={
            # The same in each attempt, so that mail programs show the message once.
            "Message-ID": f"<{delivery.pk}@{urlsplit(settings.SITE_URL).hostname}>",
            "Auto-Submitted": "auto-generated",
            "List-Unsubscribe": f"<{leave}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        },
    )
    return partial(_send_mail, message)
