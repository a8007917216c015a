"""Checks of untrusted addresses for notifications. Pure.

The worker is inside the operator's network, so a name must resolve to public addresses only
(`posting` checks that). If an IPv6 address embeds an IPv4 address, either the IPv4 address is
checked or the address is refused.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

MAX_LENGTH = 500
PORTS = frozenset({443, 8443})

IPAddress = IPv4Address | IPv6Address

_DEFAULT_PORTS = {"https": 443, "http": 80}
_TOPIC = re.compile(r"/(?P<topic>[-_A-Za-z0-9]{1,64})/?")
_LABEL = re.compile(r"[A-Za-z0-9_]([-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?")
# Printable ASCII without the space: other characters have to be percent-encoded.
_PRINTABLE = re.compile(r"[!-~]+")
_GLOBAL_IPV6 = ip_network("2000::/3")
_NAT64 = ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
# Networks that some versions of Python count as global although they are not, or whose addresses
# embed an IPv4 address in another position.
_SPECIAL = [
    ip_network(network)
    for network in (
        # Protocol assignments and benchmarks, and the relays of 6to4.
        *("192.0.0.0/24", "198.18.0.0/15", "192.88.99.0/24"),
        # Protocol assignments with Teredo, 6to4, documentation, segment routing.
        *("2001::/23", "2002::/16", "2001:db8::/32", "3fff::/20", "5f00::/16"),
    )
]
# Metadata services of clouds (AWS, Google, Scaleway, Azure, Oracle); others are link-local or in
# 100.64.0.0/10, which is neither public nor private.
_METADATA = frozenset(
    ip_address(address)
    for address in (
        *("fd00:ec2::254", "fd20:ce::254", "fd00:42::42", "168.63.129.16", "192.0.0.192"),
    )
)
# Prefix of the IPv4 address in an interface identifier of ISATAP; one bit of it may be set.
_ISATAP, _ISATAP_MASK = 0x5EFE, 0xFDFF_FFFF


class TargetError(ValueError):
    """An address cannot be used; `code` is "invalid", "scheme", "port", "address" or "topic"."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True)
class NotificationTarget:
    """A parsed address: `host` is a name or an IP address, `path` begins with a slash."""

    scheme: str
    host: str
    port: int
    path: str


def read_target(address: str, *, private: bool) -> NotificationTarget:
    """Parse an address without resolving its host. Raises TargetError if it is not allowed.

    `private` allows plain HTTP, any port and private IP addresses, for a site in a private network.
    """
    if len(address) > MAX_LENGTH or not _PRINTABLE.fullmatch(address):
        raise TargetError("invalid")
    try:
        parts = urlsplit(address)
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme, 0)
    except ValueError:
        raise TargetError("invalid") from None
    if parts.scheme != "https" and not (private and parts.scheme == "http"):
        raise TargetError("scheme")
    if "@" in parts.netloc or parts.fragment:
        raise TargetError("invalid")
    if not private and port not in PORTS:
        raise TargetError("port")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = _read_host(parts.hostname or "", private=private)
    return NotificationTarget(parts.scheme, host, port, path)


def read_topic(address: str, *, private: bool) -> tuple[NotificationTarget, str]:
    """Split a topic's address into its ntfy server (with path `/`) and the topic's name.

    `private` is as in `read_target`. Raises TargetError if the address is not allowed.
    """
    target = read_target(address, private=private)
    found = _TOPIC.fullmatch(target.path)
    if found is None:
        raise TargetError("topic")
    return NotificationTarget(target.scheme, target.host, target.port, "/"), found["topic"]


def _read_host(host: str, *, private: bool) -> str:
    try:
        address = ip_address(host)
    except ValueError:
        return _read_name(host)
    if not may_be_called(address, private=private):
        raise TargetError("address")
    return str(address)


def _read_name(host: str) -> str:
    labels = host.removesuffix(".").split(".")
    if len(host) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise TargetError("invalid")
    return host.removesuffix(".")


def may_be_called(address: IPAddress, *, private: bool) -> bool:
    """Return whether notifications may be sent to an IP address.

    Public addresses are allowed; with `private`, also private and loopback ones. Link-local,
    multicast and unspecified addresses, and the metadata services of clouds, are never allowed.
    """
    address = _unfold(address)
    is_metadata = address.is_link_local or address in _METADATA
    if address.is_multicast or address.is_unspecified or is_metadata or _embeds_ipv4(address):
        return False
    if private and (address.is_loopback or address.is_private):
        return True
    is_special = any(address.version == net.version and address in net for net in _SPECIAL)
    if is_special or address.is_reserved or not address.is_global:
        return False
    return isinstance(address, IPv4Address) or address in _GLOBAL_IPV6


def _unfold(address: IPAddress) -> IPAddress:
    """Return the IPv4 address in an IPv4-mapped or NAT64 address; return others without zone."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return IPv6Address(int(address))


def _embeds_ipv4(address: IPAddress) -> bool:
    """Return whether `address` belongs to Teredo, 6to4, local NAT64 or ISATAP."""
    if isinstance(address, IPv4Address):
        return False
    is_isatap = (int(address) >> 32) & _ISATAP_MASK == _ISATAP
    is_tunnel = address.teredo is not None or address.sixtofour is not None
    return is_isatap or is_tunnel or address in _LOCAL_NAT64
