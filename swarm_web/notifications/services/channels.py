"""Services for an owner's channels: add, test, replace the secret, switch on and off.

TooManyChannelsError  the account has reached the maximum number of channels
DuplicateChannelError the account has this channel already
SwitchedOffError      the operator switched the channel off
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import uuid4

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from swarm_web.core.attempts import count_attempt
from swarm_web.notifications.models import Channel, Delivery, Failure
from swarm_web.notifications.webhook_signing import make_secret

MAX_CHANNELS = 10
MAX_TESTS = 5
TESTS_PERIOD_S = 600


class TooManyChannelsError(Exception):
    """The account has reached the maximum number of channels."""


class DuplicateChannelError(Exception):
    """The account has this channel already."""


class SwitchedOffError(Exception):
    """The operator switched the channel off, so its owner cannot switch it on."""


def add_channel(
    owner: User, *, kind: str, target: str, events: Sequence[str], now: datetime
) -> Channel:
    """Create and return a channel of `owner`; a webhook gets a new secret.

    Raises TooManyChannelsError if the owner has MAX_CHANNELS, and DuplicateChannelError if one of
    the owner's channels has the same kind and target.
    """
    try:
        with transaction.atomic():
            # Locked, so that concurrent requests cannot exceed the maximum.
            User.objects.select_for_update(no_key=True).get(pk=owner.pk)
            if Channel.objects.filter(owner=owner).count() >= MAX_CHANNELS:
                raise TooManyChannelsError
            return Channel.objects.create(
                owner=owner,
                kind=kind,
                target=target,
                events=list(events),
                secret=make_secret() if kind == Channel.Kind.WEBHOOK else "",
                created_at=now,
            )
    except IntegrityError:
        raise DuplicateChannelError from None


def replace_secret(channel: Channel) -> str:
    """Replace a webhook's secret and return the new one, which signs all further messages."""
    secret = make_secret()
    Channel.objects.filter(pk=channel.pk).update(secret=secret)
    return secret


def switch_on(channel: Channel) -> None:
    """Switch a channel on and reset its failures.

    Raises SwitchedOffError if the operator switched it off.
    """
    switched = _not_by_operator(channel).update(
        enabled=True,
        off_because=Channel.Off.NONE,
        failures=0,
        failing_since=None,
        failure=Failure.NONE,
        next_attempt_at=None,
    )
    if not switched:
        raise SwitchedOffError


def switch_off(channel: Channel, *, because: Channel.Off, now: datetime) -> None:
    """Switch a channel off, store `because` as the reason, and drop its waiting deliveries.

    If the operator switched the channel off earlier, the operator's reason stays stored.
    """
    with transaction.atomic():
        _not_by_operator(channel).update(enabled=False, off_because=because)
        channel.deliveries.waiting().update(state=Delivery.State.DROPPED, ended_at=now)


def _not_by_operator(channel: Channel) -> QuerySet[Channel]:
    return Channel.objects.filter(pk=channel.pk).exclude(off_because=Channel.Off.OPERATOR)


def send_test(channel: Channel, *, now: datetime) -> None:
    """Queue a test message. If sending it fails, there is no second attempt.

    If the channel's latest attempt failed, the channel is in a pause. This call ends the pause, so
    that the test is sent soon.

    Raises RequestError if the account has already sent MAX_TESTS tests. The count is reset
    TESTS_PERIOD_S seconds after the first of them.
    """
    # By account, so that a new channel does not reset the limit.
    count_attempt(
        f"notifications:tests:{channel.owner_id}",
        limit=MAX_TESTS,
        period_s=TESTS_PERIOD_S,
        code="notifications.limited",
        message=f"At most {MAX_TESTS} test messages are sent in {TESTS_PERIOD_S // 60} minutes.",
    )
    Delivery.objects.create(
        channel=channel,
        type=Delivery.Type.TEST,
        key=f"test:{uuid4()}",
        data={"url": f"{settings.SITE_URL}/account/notifications/"},
        created_at=now,
    )
    Channel.objects.filter(pk=channel.pk, failures__gt=0).update(next_attempt_at=None)
