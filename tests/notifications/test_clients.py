"""Clients that are too old, or will be soon: each channel is told once of a version."""

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


def test_the_owner_of_an_old_client_is_told_which_nodes_have_it(owner: User) -> None:
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


def test_a_version_is_told_once_even_when_old_messages_are_forgotten(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    notice()
    prune_deliveries(now=NOW + RETENTION + timedelta(days=1))
    assert len(notice()) == 1


def test_the_next_version_is_told_again(owner: User, settings: Settings) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    notice()
    settings.MINIMUM_CLIENT_VERSION = "0.4.0"
    assert [delivery.data["version"] for delivery in notice()] == ["0.3.0", "0.4.0"]


def test_who_has_a_new_client_is_not_told(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW, client_version="0.3.0")
    assert notice() == []


def test_a_node_that_was_not_seen_for_months_is_not_counted(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_owned(owner, last_seen=NOW - timedelta(days=90), client_version="0.2.0")
    assert notice() == []


def test_the_seasons_minimum_takes_the_place_of_the_sites(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_season(minimum_client="0.2.0")
    make_owned(owner, last_seen=NOW, client_version="0.2.0")
    assert notice() == []


def test_a_version_that_is_announced_is_told_before_it_is_required(owner: User) -> None:
    make_channel(owner, REQUIRED)
    make_season(next_minimum_client="0.5.0")
    make_owned(owner, last_seen=NOW, client_version="0.3.0")
    (delivery,) = notice()
    assert (delivery.data["version"], delivery.data["now"]) == ("0.5.0", False)


def test_many_owners_are_told_in_batches_each_once(
    owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noticing_clients, "BATCH", 2)
    for each in (owner, *(User.objects.create_user(f"owner{n}") for n in range(2))):
        make_channel(each, REQUIRED)
        make_owned(each, last_seen=NOW, client_version="0.2.0")
    assert [notice_minimum(now=NOW) for _ in range(3)] == [2, 1, 0]
