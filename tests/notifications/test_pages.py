"""Test /account/notifications/, without JavaScript."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services.channels import MAX_CHANNELS, MAX_TESTS
from tests.notifications.conftest import NOW, make_channel
from tests.notifications.test_delivering import fail, put

LIST = "/account/notifications/"
SILENT = Channel.Event.NODE_SILENT


@pytest.fixture
def browser(owner: User) -> Client:
    """A client that is signed in as the owner."""
    client = Client(headers={"accept": "text/html"})
    client.force_login(owner)
    return client


def add(browser: Client, **form: Any) -> Any:
    """Submit the form and return the response."""
    sent = {"kind": "webhook", "target": "https://example.org/hook", "events": [SILENT], **form}
    return browser.post(LIST, sent)


def page_of(channel: Channel) -> str:
    return f"{LIST}{channel.pk}/"


def text(answer: Any) -> str:
    return str(answer.content.decode())


@pytest.mark.parametrize("path", ["", "1/"])
def test_anonymous_user_is_redirected_to_login(db: None, client: Client, path: str) -> None:
    answer = client.get(LIST + path)
    assert answer.status_code == 302
    assert f"login/?next={LIST}{path}" in answer["Location"]


def test_new_account_has_no_channels(browser: Client) -> None:
    assert "You have no channels yet." in text(browser.get(LIST))


def test_account_page_and_notifications_page_link_to_each_other(browser: Client) -> None:
    assert f'href="{LIST}"' in text(browser.get("/account/"))
    assert 'href="/account/"' in text(browser.get(LIST)).partition("<main")[2]


def test_page_is_not_cached(browser: Client) -> None:
    assert "no-store" in browser.get(LIST)["Cache-Control"]


def test_added_webhook_is_saved_and_its_secret_shown(browser: Client, owner: User) -> None:
    answer = add(browser)
    channel = Channel.objects.get()
    assert (channel.owner, channel.kind, channel.events) == (owner, "webhook", [SILENT])
    assert channel.secret in text(answer)
    assert "no-store" in answer["Cache-Control"]


def test_secret_is_shown_only_once(browser: Client) -> None:
    add(browser)
    channel = Channel.objects.get()
    assert channel.secret not in text(browser.get(page_of(channel)))


def test_secret_can_be_replaced(browser: Client) -> None:
    add(browser)
    before = Channel.objects.get()
    answer = browser.post(page_of(before) + "secret/")
    after = Channel.objects.get()
    assert after.secret != before.secret
    assert after.secret in text(answer)


def test_ntfy_topic_can_be_added(browser: Client) -> None:
    add(browser, kind="ntfy", target="https://ntfy.sh/birds")
    assert Channel.objects.get().target == "https://ntfy.sh/birds"


def test_target_of_an_email_channel_is_ignored(browser: Client) -> None:
    add(browser, kind="email", target="https://example.org/")
    assert Channel.objects.get().target == ""


def test_email_is_not_offered_without_a_mail_server(browser: Client, settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert 'value="email"' not in text(browser.get(LIST))
    add(browser, kind="email")
    assert not Channel.objects.exists()


@pytest.mark.parametrize(
    ("form", "problem"),
    [
        ({"target": "http://example.org/"}, "must begin with https://"),
        ({"target": "https://10.0.0.1/"}, "address is not public"),
        ({"target": "https://example.org:22/"}, "ports 443 and 8443"),
        ({"target": ""}, "Enter an address such as https://host/path"),
        ({"target": "https://ntfy.sh/", "kind": "ntfy"}, "https://HOST/TOPIC"),
        ({"events": []}, "Choose at least one event."),
        ({"events": ["node.exploded"]}, "not one of the available choices"),
        ({"kind": "pigeon"}, "not one of the available choices"),
        ({"target": "https://example.org/\0"}, "Null characters"),
    ],
)
def test_invalid_form_is_rejected_with_an_explanation(
    browser: Client, settings: Settings, form: dict[str, Any], problem: str
) -> None:
    settings.NOTIFICATION_PRIVATE_TARGETS = False
    answer = add(browser, **form)
    assert problem in text(answer)
    assert not Channel.objects.exists()


def test_duplicate_channel_is_rejected(browser: Client) -> None:
    add(browser)
    assert "You already have this channel." in text(add(browser))
    assert Channel.objects.count() == 1


def test_number_of_channels_per_account_is_limited(browser: Client) -> None:
    for number in range(MAX_CHANNELS + 1):
        answer = add(browser, target=f"https://example.org/{number}")
    assert "at most 10 channels" in text(answer)
    assert Channel.objects.count() == MAX_CHANNELS


def test_events_of_a_channel_can_be_changed(browser: Client, owner: User) -> None:
    channel = make_channel(owner, SILENT)
    browser.post(page_of(channel), {"events": ["round.scored"]})
    channel.refresh_from_db()
    assert channel.events == ["round.scored"]


def test_test_message_is_queued(browser: Client, owner: User) -> None:
    channel = make_channel(owner)
    browser.post(page_of(channel) + "test/")
    assert Delivery.objects.get().type == Delivery.Type.TEST


def test_number_of_test_messages_is_limited_across_channels(browser: Client, owner: User) -> None:
    for _ in range(MAX_TESTS):
        channel = make_channel(owner)
        browser.post(page_of(channel) + "test/")
        browser.post(page_of(channel) + "delete/")
    answer = browser.post(page_of(make_channel(owner)) + "test/")
    assert answer.status_code == 429
    assert 0 < int(answer["Retry-After"]) <= 600
    assert not Delivery.objects.exists()


def test_channel_can_be_switched_off_and_on(browser: Client, owner: User) -> None:
    channel = make_channel(owner)
    browser.post(page_of(channel) + "switch/", {"off": ""})
    assert "you switched it off" in text(browser.get(page_of(channel)))
    browser.post(page_of(channel) + "switch/")
    channel.refresh_from_db()
    assert (channel.enabled, channel.off_because) == (True, "")


def test_disabled_channel_rejects_a_test_message(browser: Client, owner: User) -> None:
    channel = make_channel(owner)
    Channel.objects.update(enabled=False)
    assert browser.post(page_of(channel) + "test/").status_code == 400
    assert not Delivery.objects.exists()


def test_owner_cannot_switch_on_a_channel_disabled_by_the_operator(
    browser: Client, owner: User
) -> None:
    channel = make_channel(owner)
    Channel.objects.update(enabled=False, off_because=Channel.Off.OPERATOR)
    browser.post(page_of(channel) + "switch/", {"off": ""})
    assert browser.post(page_of(channel) + "switch/").status_code == 403
    channel.refresh_from_db()
    assert not channel.enabled


def test_channel_is_deleted_with_its_messages(browser: Client, owner: User) -> None:
    put(make_channel(owner))
    browser.post(page_of(Channel.objects.get()) + "delete/")
    assert (Channel.objects.count(), Delivery.objects.count()) == (0, 0)


@pytest.mark.parametrize("action", ["", "test/", "secret/", "switch/", "delete/"])
def test_channel_of_another_account_is_not_found(browser: Client, action: str) -> None:
    channel = make_channel(User.objects.create_user("bob"))
    assert browser.post(page_of(channel) + action, {"events": [SILENT]}).status_code == 404
    channel.refresh_from_db()
    assert channel.enabled


@pytest.mark.parametrize("action", ["test/", "secret/", "switch/", "delete/"])
def test_get_requests_are_not_allowed_for_actions(
    browser: Client, owner: User, action: str
) -> None:
    assert browser.get(page_of(make_channel(owner)) + action).status_code == 405


def test_post_without_csrf_token_is_rejected(owner: User) -> None:
    channel = make_channel(owner)
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(owner)
    for path in (
        LIST,
        *(page_of(channel) + action for action in ("", "test/", "switch/", "delete/")),
    ):
        assert browser.post(path).status_code == 403


def test_failure_and_its_reason_are_shown(browser: Client, owner: User) -> None:
    channel = make_channel(owner)
    put(channel)
    fail(channel, at=NOW)
    for path in (LIST, page_of(channel)):
        shown = text(browser.get(path))
        assert "failing" in shown
        assert "no response in time" in shown


def test_target_is_escaped(browser: Client) -> None:
    add(browser, target="https://example.org/<script>alert(1)</script>")
    assert not re.search(r"<script>alert", text(browser.get(LIST)))
