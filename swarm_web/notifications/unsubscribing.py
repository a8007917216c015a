"""Links that switch a channel off without signing in (RFC 8058)."""

from django.conf import settings
from django.core import signing
from django.urls import reverse

from swarm_web.notifications.models import Channel

_SALT = "swarm_web.notifications.unsubscribing"


def unsubscribe_url(channel: Channel) -> str:
    """Return the link that switches a channel off, valid while the channel exists."""
    token = signing.dumps(channel.pk, salt=_SALT)
    return settings.SITE_URL + reverse("unsubscribe", args=[token])  # type: ignore[no-any-return]


def read_token(token: str) -> Channel | None:
    """Return the channel of a link's token; None if the channel is deleted or the token invalid."""
    try:
        key = signing.loads(token, salt=_SALT)
    except signing.BadSignature:
        return None
    return Channel.objects.filter(pk=key).first()
