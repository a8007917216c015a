"""Queries: accounts' e-mail addresses, and counts for the operator's metrics."""

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Count

from swarm_web.notifications.models import Channel, Delivery

# Backends that do not send mail.
_NO_MAIL = {
    f"django.core.mail.backends.{name}.EmailBackend" for name in ("console", "dummy", "filebased")
}


def can_mail() -> bool:
    """Return whether the operator has configured a mail server."""
    return settings.EMAIL_BACKEND not in _NO_MAIL


def mail_address(account: User) -> str | None:
    """Return the account's e-mail address; None if it has none or it must not be used.

    If the site verifies addresses, an unconfirmed one is not used: it may belong to another person.
    """
    if not account.email or settings.ACCOUNT_EMAIL_VERIFICATION == "none":
        return account.email or None
    confirmed = EmailAddress.objects.filter(
        user=account, email__iexact=account.email, verified=True
    )
    return account.email if confirmed.exists() else None


def count_deliveries() -> dict[str, int]:
    """Return the number of deliveries in each state."""
    counted = Delivery.objects.order_by().values("state").annotate(total=Count("pk"))
    return dict.fromkeys(Delivery.State.values, 0) | {row["state"]: row["total"] for row in counted}


def count_channels_off() -> int:
    """Return the number of channels switched off because of failures or a 410 response."""
    failing = [Channel.Off.FAILING, Channel.Off.GONE]
    return Channel.objects.filter(off_because__in=failing).count()
