"""Finds the client address by which requests are counted and limited.

Each proxy in front of the site appends the address of its client to X-Forwarded-For. So with N
proxies (setting TRUSTED_PROXIES) the visitor's address is the Nth from the right; the visitor may
have forged the addresses to its left. If the setting is 0 or the header is missing, the
connection's address is used.
"""

from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest

# A client with one IPv6 address usually controls a network of this size.
_IPV6_PREFIX = 64


def network_of_request(request: HttpRequest) -> str:
    """Return the network of a Django request's client (see `name_network`)."""
    read_header = request.META.get
    peer, forwarded = read_header("REMOTE_ADDR", ""), read_header("HTTP_X_FORWARDED_FOR", "")
    return name_network(_find_address(peer, forwarded))


def network_of(client: tuple[str, int] | None, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the network of an ASGI connection's client (see `name_network`).

    `client` and `headers` are taken from the connection's scope.
    """
    forwarded = b",".join(value for name, value in headers if name == b"x-forwarded-for")
    return name_network(_find_address(client[0] if client else "", forwarded.decode("latin-1")))


def _find_address(peer: str, forwarded: str) -> str:
    trusted: int = settings.TRUSTED_PROXIES
    if not trusted or not forwarded:
        return peer
    return _strip_port(forwarded.split(",")[-trusted:][0].strip())


def _strip_port(address: str) -> str:
    """Remove the port that some proxies add: 192.0.2.1:4321 or [2001:db8::1]:4321."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def name_network(address: str) -> str:
    """Return the network whose requests are counted together: an IPv4 address or an IPv6 /64.

    For an IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) this is the IPv4 address. If `address` is
    not an IP address, its first 64 characters are returned.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    if parsed.version == 4:
        return str(parsed)
    return str(ip_network((parsed, _IPV6_PREFIX), strict=False))
