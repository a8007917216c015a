"""Test notices about outdated clients: each channel gets one per version."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from swarm_web.notifications.models import Channel, Delivery
from swarm_web.notifications.services import noticing_clients
from swarm_web.notifications.services.delivering import RETENTION, prune_deliveries
from swarm_web.notifications.services.noticing_clients import notice_minimum
from tests.factories import make_season
from tests.notifications.conftest import NOW, make_channel, make_owned

REQUIRED = Channel.Event.CLIENT_REQUIRED


@pytest.fixture(autouse=True)
def _minimum(settings: Settings) -> None:
    settings.MINIMUM_CLIENT_VERSION = "0.3.0"


def notice() -> list[Delivery]:
    assert [notice_minimum(now=NOW) for _ in range(2)][1] == 0
    return list(Delivery.objects.order_by("key"))


def test_owner_of_an_outdated_client_is_notified_with_the_affected_nodes(owner: User) -> None:
    make_channel(owner, REQUIRED)
    old = make_owned(owner, last_seen=NOW, client_version="0.2.0")
    make_owned(owner, last_seen=NOW, client_version="0.3.0")
    (delivery,) = notice()
    assert delivery.data == {
        "version": "0.3.0",
        "now": True,
        "url": "http://localhost:8000/join/",
        "nodes": [
            {
                "node": old.name,
                "url": f"http://localhost:8000/nodes/{old.name}/",
                "client": "0.2.0",
            }
        ],
    }


def test_notice_is_not_repeated_after_old_deliveries_are_pruned(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    notice()
    prune_deliveries(now=NOW + RETENTION + timedelta(days=1))
    assert len(notice()) == 1


def test_next_version_causes_another_notice(owner: User, settings: Settings) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    notice()
    settings.MINIMUM_CLIENT_VERSION = "0.4.0"
    assert [delivery.data["version"] for delivery in notice()] == ["0.3.0", "0.4.0"]


def test_owner_with_current_clients_is_not_notified(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.3.0")
    assert notice() == []


def test_node_unseen_for_months_is_ignored(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW - timedelta(days=90), client_version="0.2.0")
    assert notice() == []


def test_minimum_of_the_season_overrides_the_minimum_of_the_site(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_season(minimum_client="0.2.0")
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    assert notice() == []


def test_announced_version_causes_a_notice_before_it_is_required(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_season(next_minimum_client="0.5.0")
    make_owned(owner, last_seen=NOW, client_version="0.3.0")
    (delivery,) = notice()
    assert (delivery.data["version"], delivery.data["now"]) == ("0.5.0", False)


def test_owners_are_notified_in_batches_and_only_once(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticing_clients, "BATCH", 2)
    for each in (owner, *(User.objects.create_user(f"owner{n}") for n in range(2))):
        make_channel(each, REQUIRED)
        make_owned(each, last_seen=NOW, client_version="0.2.0")
    assert [notice_minimum(now=NOW) for _ in range(3)] == [2, 1, 0]
