"""Test that client addresses are read from headers of trusted proxies only."""

from collections.abc import Sequence

import httpx
import pytest
from django.test import RequestFactory
from pytest_django import Settings

from swarm_web.core.store import sync_redis
from swarm_web.edge.addresses import name_network, network_of, network_of_request
from tests.web import serving

ROUNDS = "/api/v1/rounds"
XFF = "X-Forwarded-For"
SECURE = {"X-Forwarded-Proto": "https"}
CLAIMS = [{XFF: f"192.0.2.{last}"} for last in range(5)]
# Includes the start of the server.
PATIENCE_S = 30


def request_all(site: str, headers: Sequence[dict[str, str]]) -> set[int]:
    """Send a request to the read API with each set of headers, and return the statuses."""
    with httpx.Client(base_url=site, timeout=PATIENCE_S) as client:
        return {client.get(ROUNDS, headers=each).status_code for each in headers}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_forwarded_addresses_of_untrusted_proxies_are_ignored() -> None:
    sync_redis().flushdb()
    with serving(TRUSTED_PROXIES="0", API_REQUESTS_PER_MINUTE="2") as site:
        # If a minute ends meanwhile, four of the five are within the limit.
        assert request_all(site, CLAIMS) == {200, 429}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_forwarded_scheme_of_an_untrusted_proxy_is_ignored() -> None:
    with serving(HTTPS="true", TRUSTED_PROXIES="0") as site:
        assert request_all(site, [SECURE, {}]) == {301}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_address_and_scheme_are_read_from_a_trusted_proxy() -> None:
    """HTTPS implies a TLS proxy, so one proxy is trusted by default."""
    sync_redis().flushdb()
    with serving(HTTPS="true", API_REQUESTS_PER_MINUTE="2") as site:
        assert request_all(site, [SECURE | claim for claim in CLAIMS]) == {200}
        assert request_all(site, [{}]) == {301}


@pytest.mark.parametrize(
    ("proxies", "forwarded", "network"),
    [
        (0, "192.0.2.1", "198.51.100.1"),
        (1, "", "198.51.100.1"),
        (1, "192.0.2.1, 192.0.2.2", "192.0.2.2"),
        (2, "192.0.2.1, 192.0.2.2", "192.0.2.1"),
        (2, "192.0.2.2", "192.0.2.2"),
        (1, "192.0.2.1:4321", "192.0.2.1"),
        (1, "[2001:db8::1]:4321", "2001:db8::/64"),
        (1, "[2001:db8::1]", "2001:db8::/64"),
        (1, "2001:db8::1", "2001:db8::/64"),
    ],
)
def test_each_trusted_proxy_adds_one_address(
    settings: Settings, proxies: int, forwarded: str, network: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    request = RequestFactory().get("/", REMOTE_ADDR="198.51.100.1", headers={XFF: forwarded})
    assert network_of_request(request) == network


def test_repeated_headers_of_a_socket_are_combined(settings: Settings) -> None:
    settings.TRUSTED_PROXIES = 2
    headers = [(b"x-forwarded-for", b"192.0.2.1"), (b"x-forwarded-for", b"192.0.2.2")]
    assert network_of(("198.51.100.1", 4321), headers) == "192.0.2.1"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("unknown", "unknown"),
    ],
)
def test_addresses_of_an_ipv6_network_have_the_same_name(address: str, name: str) -> None:
    assert name_network(address) == name
