"""Test that mail is sent only to the account's own address, and can be stopped without login."""

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from pytest_django import Settings

from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.selectors import mail_address
from swarm_web.notifications.services.delivering import lease_parcels, record_outcomes
from tests.notifications.conftest import NOW, make_channel
from tests.notifications.test_delivering import deliver, put


@pytest.fixture
def channel(owner: User) -> Channel:
    """The e-mail channel of the owner."""
    return make_channel(owner, kind=Channel.Kind.EMAIL)


def sent_mail(channel: Channel) -> mail.EmailMessage:
    """Deliver a message by mail and return the mail."""
    put(channel)
    deliver()
    (message,) = mail.outbox
    return message


def unsubscribe_path(message: mail.EmailMessage) -> str:
    """Return the path of the unsubscribe link."""
    return (
        str(message.extra_headers["List-Unsubscribe"])
        .strip("<>")
        .removeprefix("http://localhost:8000")
    )


def test_mail_is_plain_text_to_the_address_of_the_account(channel: Channel) -> None:
    message = sent_mail(channel)
    assert message.to == ["ada@example.org"]
    assert message.subject == "wren is offline"
    assert "http://localhost:8000/nodes/wren/" in message.body
    assert message.content_subtype == "plain"


def test_mail_is_sent_to_the_current_address(channel: Channel, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(email="ada@example.com")
    assert sent_mail(channel).to == ["ada@example.com"]


def test_message_id_is_the_id_of_the_delivery(channel: Channel) -> None:
    message = sent_mail(channel)
    assert message.extra_headers["Message-ID"] == f"<{Delivery.objects.get().pk}@localhost>"


def test_newline_in_the_subject_injects_no_header(channel: Channel) -> None:
    delivery = put(channel)
    Delivery.objects.filter(pk=delivery.pk).update(data=delivery.data | {"node": "a\nBcc: b@c.d"})
    deliver()
    (message,) = mail.outbox
    assert message.recipients() == ["ada@example.org"]
    assert "Bcc" not in message.message()
    assert message.message()["Subject"] == "a Bcc: b@c.d is offline"


def test_account_without_an_address_receives_no_mail(channel: Channel, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(email="")
    delivery = put(channel)
    deliver()
    delivery.refresh_from_db()
    assert delivery.failure == "no_address"


@pytest.mark.parametrize(
    ("verification", "verified", "expected"),
    [
        ("mandatory", True, "ada@example.org"),
        ("mandatory", False, None),
        ("optional", False, None),
        ("none", False, "ada@example.org"),
    ],
)
def test_mail_requires_a_verified_address_if_the_site_verifies_addresses(
    owner: User, settings: Settings, verification: str, verified: bool, expected: str | None
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    EmailAddress.objects.create(user=owner, email="Ada@example.org", verified=verified)
    assert mail_address(owner) == expected


def test_unreachable_mail_server_is_a_failure(channel: Channel, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    delivery = put(channel)
    record_outcomes([parcel.send() for parcel in lease_parcels(limit=1, now=NOW)], now=NOW)
    delivery.refresh_from_db()
    assert delivery.failure == "mail"


def test_mail_has_the_one_click_unsubscribe_headers(channel: Channel) -> None:
    headers = sent_mail(channel).extra_headers
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert headers["List-Unsubscribe"].startswith("<http://localhost:8000/account/")


def test_post_without_cookies_unsubscribes(channel: Channel) -> None:
    path = unsubscribe_path(sent_mail(channel))
    Client(enforce_csrf_checks=True).post(path, {"List-Unsubscribe": "One-Click"})
    channel.refresh_from_db()
    assert (channel.enabled, channel.off_because) == (False, "unsubscribed")


def test_get_of_the_unsubscribe_link_changes_nothing(channel: Channel, client: Client) -> None:
    """Mail programs open links to scan for malware."""
    answer = client.get(unsubscribe_path(sent_mail(channel)))
    assert "Unsubscribe" in answer.content.decode()
    channel.refresh_from_db()
    assert channel.enabled


def test_forged_unsubscribe_link_changes_nothing(channel: Channel, client: Client) -> None:
    path = unsubscribe_path(sent_mail(channel))
    client.post(path[:-3] + "xx/")
    channel.refresh_from_db()
    assert channel.enabled


def test_unsubscribe_link_of_a_deleted_channel_returns_the_page(
    channel: Channel, client: Client
) -> None:
    path = unsubscribe_path(sent_mail(channel))
    channel.delete()
    assert "You are unsubscribed" in client.post(path).content.decode()


def test_unsubscribe_link_does_not_replace_the_operators_reason(
    channel: Channel, client: Client
) -> None:
    path = unsubscribe_path(sent_mail(channel))
    Channel.objects.update(enabled=False, off_because=Channel.Off.OPERATOR)
    client.post(path)
    channel.refresh_from_db()
    assert channel.off_because == "operator"
