import pytest

from node_client.errors import SettingsError
from node_client.site import Site, parse_site


@pytest.mark.parametrize(
    ("text", "base", "socket"),
    [
        ("https://swarm.org", "https://swarm.org", "wss://swarm.org/ws/node/"),
        ("http://host:8000", "http://host:8000", "ws://host:8000/ws/node/"),
        ("wss://swarm.org/ws/node/", "https://swarm.org", "wss://swarm.org/ws/node/"),
        ("ws://127.0.0.1:80/ws/node/", "http://127.0.0.1:80", "ws://127.0.0.1:80/ws/node/"),
        (" https://swarm.org/join/?a=b ", "https://swarm.org", "wss://swarm.org/ws/node/"),
        ("http://[::1]:8000", "http://[::1]:8000", "ws://[::1]:8000/ws/node/"),
    ],
)
def test_every_form_of_an_address_is_accepted(text: str, base: str, socket: str) -> None:
    site = parse_site(text)
    assert (site.base, site.socket) == (base, socket)


@pytest.mark.parametrize(
    "text", ["swarm.org", "ftp://swarm.org", "https://", "http://h:x", "https://a..b", ""]
)
def test_invalid_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        parse_site(text)
    assert "https://" in refusal.value.fix


def test_address_with_a_password_is_refused() -> None:
    with pytest.raises(SettingsError, match="password"):
        parse_site("https://me:secret@swarm.org")


def test_node_name_cannot_escape_its_page() -> None:
    assert Site("https://swarm.org").page("../admin") == "https://swarm.org/nodes/..%2Fadmin/"


def test_each_site_has_its_own_folder() -> None:
    folders = {Site(f"http://host:{port}").folder for port in (1, 2)}
    assert len(folders) == 2
    assert not any("/" in folder or ":" in folder for folder in folders)
