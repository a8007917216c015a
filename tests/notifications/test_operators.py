"""Test the admin and the Prometheus figures of notifications."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from swarm_web.notifications.models import Delivery
from tests.notifications.conftest import NOW, make_channel
from tests.notifications.test_delivering import fail, put

ADMIN = "/admin/notifications/"


@pytest.fixture
def operator(admin_client: Client) -> Client:
    """A client that is signed in as a superuser."""
    return admin_client


@pytest.mark.parametrize("model", ["channel", "delivery"])
def test_admin_shows_lists_and_rows(operator: Client, owner: User, model: str) -> None:
    delivery = put(make_channel(owner))
    key = delivery.pk if model == "delivery" else delivery.channel_id
    for path in ("", f"{key}/change/"):
        assert operator.get(f"{ADMIN}{model}/{path}").status_code == 200


def test_admin_does_not_show_the_secret(operator: Client, owner: User) -> None:
    channel = make_channel(owner)
    shown = operator.get(f"{ADMIN}channel/{channel.pk}/change/").content.decode()
    assert channel.secret
    assert channel.secret not in shown


@pytest.mark.parametrize("model", ["channel", "delivery"])
def test_admin_cannot_add_rows(operator: Client, model: str) -> None:
    assert operator.get(f"{ADMIN}{model}/add/").status_code == 403


def test_operator_can_switch_a_channel_off(operator: Client, owner: User) -> None:
    channel = make_channel(owner)
    put(channel)
    operator.post(
        f"{ADMIN}channel/", {"action": "switch_off", "_selected_action": [str(channel.pk)]}
    )
    channel.refresh_from_db()
    assert (channel.enabled, channel.off_because) == (False, "operator")
    assert Delivery.objects.get().state == Delivery.State.DROPPED


def test_account_can_be_deleted_with_its_messages(operator: Client, owner: User) -> None:
    put(make_channel(owner))
    operator.post(f"/admin/auth/user/{owner.pk}/delete/", {"post": "yes"})
    assert not Delivery.objects.exists()


def test_metrics_count_deliveries_by_state_and_failing_channels(
    client: Client, owner: User
) -> None:
    channel = make_channel(owner)
    put(channel)
    fail(channel, at=NOW, failure="gone")
    put(make_channel(owner, target="http://127.0.0.1:9/other"))
    figures = client.get("/metrics").content.decode().splitlines()
    assert 'swarm_notifications{state="waiting"} 1.0' in figures
    assert 'swarm_notifications{state="dropped"} 1.0' in figures
    assert 'swarm_notifications{state="failed"} 0.0' in figures
    assert "swarm_notification_channels_failing 1.0" in figures
