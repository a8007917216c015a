"""Minimum client versions: too old clients are refused, others are advised to upgrade."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from swarm_protocol.messages import Refused, Welcome
from tests.factories import make_hello, make_season
from tests.gateway.conftest import Member
from tests.gateway.refusals import assert_refused_for_good
from tests.sockets import node_socket


async def welcome_for(gateway: str, member: Member, *, client: str) -> Welcome:
    """Send a hello as a client of some version and return the welcome."""
    async with node_socket(gateway, member.token, greet=False) as socket:
        welcome = await socket.ask(make_hello(client=client))
    assert isinstance(welcome, Welcome), welcome
    return welcome


async def test_client_older_than_the_sites_minimum_is_refused_without_a_season(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.MINIMUM_CLIENT_VERSION = "0.2.0"
    async with node_socket(gateway, amber.token, greet=False) as sender:
        await assert_refused_for_good(sender, make_hello(client="0.1.9"), "client.too_old")
    await welcome_for(gateway, amber, client="0.10.0")


async def test_refusal_of_a_too_old_client_links_to_the_join_page(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.MINIMUM_CLIENT_VERSION, settings.SITE_URL = "0.2.0", "https://swarm.example.net"
    async with node_socket(gateway, amber.token, greet=False) as sender:
        refused = await sender.ask(make_hello(client="0.1.9"))
    assert isinstance(refused, Refused)
    assert "https://swarm.example.net/join/" in refused.fix


async def test_client_older_than_the_seasons_minimum_is_refused(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.MINIMUM_CLIENT_VERSION = "0.1.0"
    await sync_to_async(make_season)(minimum_client="0.2.0")
    async with node_socket(gateway, amber.token, greet=False) as sender:
        await assert_refused_for_good(sender, make_hello(client="0.1.9"), "client.too_old")
    await welcome_for(gateway, amber, client="0.2.0")


async def test_sites_minimum_applies_in_a_season_without_a_minimum(
    gateway: str, amber: Member, settings: Any
) -> None:
    settings.MINIMUM_CLIENT_VERSION = "0.2.0"
    await sync_to_async(make_season)(minimum_client="")
    async with node_socket(gateway, amber.token, greet=False) as sender:
        await assert_refused_for_good(sender, make_hello(client="0.1.9"), "client.too_old")
    await welcome_for(gateway, amber, client="0.2.0")


@pytest.mark.parametrize(
    ("client", "upgrade"),
    [("0.2.9", "0.3.0"), ("0.3.0", None), ("0.10.0", None)],
    ids=["older", "equal", "newer"],
)
async def test_welcome_names_the_next_minimum_to_older_clients(
    gateway: str, amber: Member, client: str, upgrade: str | None
) -> None:
    await sync_to_async(make_season)(minimum_client="0.2.0", next_minimum_client="0.3.0")
    assert (await welcome_for(gateway, amber, client=client)).upgrade == upgrade


async def test_welcome_names_no_upgrade_without_a_next_minimum(gateway: str, amber: Member) -> None:
    await sync_to_async(make_season)()
    assert (await welcome_for(gateway, amber, client="0.1.0")).upgrade is None


async def test_hello_with_an_invalid_client_version_is_refused(gateway: str, amber: Member) -> None:
    async with node_socket(gateway, amber.token, greet=False) as sender:
        refused = await sender.ask(make_hello(client="newest"))
        assert isinstance(refused, Refused)
        assert refused.code == "protocol.invalid"
        assert isinstance(await sender.ask(make_hello()), Welcome)
