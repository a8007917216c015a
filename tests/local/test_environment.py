"""Test the settings of a site that runs on one machine."""

from pathlib import Path

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.site import LocalSite, load_settings, save_settings, server_environment


@pytest.fixture
def site(tmp_path: Path) -> LocalSite:
    return LocalSite(state=tmp_path, port=8123, database_url="postgres://db", redis_url="redis://r")


def test_site_uses_plain_http_at_its_own_address(site: LocalSite) -> None:
    environment = server_environment(site, {})
    assert environment["HTTPS"] == "false"
    assert environment["SITE_URL"] == "http://127.0.0.1:8123"
    assert environment["DATABASE_URL"] == "postgres://db"
    assert "DEBUG" not in environment


def test_secret_key_is_the_same_at_every_start(site: LocalSite) -> None:
    keys = {server_environment(site, {})["SECRET_KEY"] for _ in range(2)}
    assert len(keys) == 1
    assert len(keys.pop()) >= 32


def test_operator_settings_take_precedence(site: LocalSite) -> None:
    outer = {"SITE_URL": "https://swarm.example", "HTTPS": "true", "RELAY_POOL_SIZE": "9"}
    assert outer.items() <= server_environment(site, outer).items()


def test_loopback_is_always_an_allowed_host(site: LocalSite) -> None:
    environment = server_environment(site, {"ALLOWED_HOSTS": "swarm.example"})
    assert environment["ALLOWED_HOSTS"] == "swarm.example,127.0.0.1"


def test_settings_are_saved_readable_only_by_their_owner(site: LocalSite) -> None:
    save_settings(site, {})
    assert load_settings(site.state)["DATABASE_URL"] == "postgres://db"
    assert (site.state / "site.json").stat().st_mode & 0o777 == 0o600


def test_loading_settings_without_a_site_explains_how_to_start_one(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="make up"):
        load_settings(tmp_path)
