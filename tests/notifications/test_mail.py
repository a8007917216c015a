"""Mail goes to the account's own address only, and can be stopped without signing in."""

import pytest
from django.apps import apps
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
    """The owner's channel of e-mail."""
    return make_channel(owner, kind=Channel.Kind.EMAIL)


def sent_mail(channel: Channel) -> mail.EmailMessage:
    """Let a message be mailed and return the mail."""
    put(channel)
    deliver()
    (message,) = mail.outbox
    return message


def leave_path(message: mail.EmailMessage) -> str:
    """Return the path of the link to unsubscribe."""
    return (
        str(message.extra_headers["List-Unsubscribe"])
        .strip("<>")
        .removeprefix("http://localhost:8000")
    )


def test_mail_goes_to_the_accounts_address_in_plain_text(channel: Channel) -> None:
    message = sent_mail(channel)
    assert message.to == ["ada@example.org"]
    assert message.subject == "wren is offline"
    assert "http://localhost:8000/nodes/wren/" in message.body
    assert message.content_subtype == "plain"


def test_mail_follows_a_change_of_the_address(channel: Channel, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(email="ada@example.com")
    assert sent_mail(channel).to == ["ada@example.com"]


def test_mail_has_the_same_id_in_each_attempt(channel: Channel) -> None:
    message = sent_mail(channel)
    assert message.extra_headers["Message-ID"] == f"<{Delivery.objects.get().pk}@localhost>"


def test_no_subject_can_hold_another_header(channel: Channel) -> None:
    delivery = put(channel)
    Delivery.objects.filter(pk=delivery.pk).update(data=delivery.data | {"node": "a\nBcc: b@c.d"})
    deliver()
    (message,) = mail.outbox
    assert message.recipients() == ["ada@example.org"]
    assert "Bcc" not in message.message()
    assert message.message()["Subject"] == "a Bcc: b@c.d is offline"


def test_an_account_without_an_address_gets_no_mail(channel: Channel, owner: User) -> None:
    User.objects.filter(pk=owner.pk).update(email="")
    delivery = put(channel)
    assert deliver() == []
    delivery.refresh_from_db()
    assert delivery.failure == "no_address"


@pytest.mark.skipif(not apps.is_installed("allauth.account"), reason="no address is confirmed")
@pytest.mark.parametrize(
    ("verification", "verified", "expected"),
    [
        ("mandatory", True, "ada@example.org"),
        ("mandatory", False, None),
        ("optional", False, None),
        ("none", False, "ada@example.org"),
    ],
)
def test_mail_goes_to_confirmed_addresses_where_the_site_confirms_them(
    owner: User, settings: Settings, verification: str, verified: bool, expected: str | None
) -> None:
    settings.ACCOUNT_EMAIL_VERIFICATION = verification
    addresses = apps.get_app_config("account").get_model("EmailAddress")._default_manager
    addresses.create(user=owner, email="Ada@example.org", verified=verified)
    assert mail_address(owner) == expected


def test_a_mail_server_that_is_away_is_a_failure(channel: Channel, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    delivery = put(channel)
    record_outcomes([parcel.send() for parcel in lease_parcels(limit=1, now=NOW)], now=NOW)
    delivery.refresh_from_db()
    assert delivery.failure == "mail"


def test_mail_has_the_headers_of_one_click_unsubscribing(channel: Channel) -> None:
    headers = sent_mail(channel).extra_headers
    assert headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert headers["List-Unsubscribe"].startswith("<http://localhost:8000/account/")


def test_one_post_without_cookies_unsubscribes(channel: Channel) -> None:
    path = leave_path(sent_mail(channel))
    Client(enforce_csrf_checks=True).post(path, {"List-Unsubscribe": "One-Click"})
    channel.refresh_from_db()
    assert (channel.enabled, channel.off_because) == (False, "unsubscribed")


def test_opening_the_link_changes_nothing(channel: Channel, client: Client) -> None:
    """Mail programs open links to look for viruses."""
    answer = client.get(leave_path(sent_mail(channel)))
    assert "Unsubscribe" in answer.content.decode()
    channel.refresh_from_db()
    assert channel.enabled


def test_a_forged_link_unsubscribes_nobody(channel: Channel, client: Client) -> None:
    path = leave_path(sent_mail(channel))
    client.post(path[:-3] + "xx/")
    channel.refresh_from_db()
    assert channel.enabled


def test_the_link_of_a_channel_that_is_gone_is_answered(channel: Channel, client: Client) -> None:
    path = leave_path(sent_mail(channel))
    channel.delete()
    assert "You are unsubscribed" in client.post(path).content.decode()


def test_a_link_does_not_switch_on_what_the_operator_switched_off(
    channel: Channel, client: Client
) -> None:
    path = leave_path(sent_mail(channel))
    Channel.objects.update(enabled=False, off_because=Channel.Off.OPERATOR)
    client.post(path)
    channel.refresh_from_db()
    assert channel.off_because == "operator"
