"""Test which target addresses may be called."""

from ipaddress import ip_address

import pytest

from swarm_web.notifications.targets import (
    NotificationTarget,
    TargetError,
    may_be_called,
    read_target,
    read_topic,
)

PUBLIC = ["93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:93.184.216.34"]
PUBLIC += ["64:ff9b::5db8:d822"]
NOT_PUBLIC = [
    *("127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1"),
    *("0.0.0.0", "0.1.2.3", "169.254.169.254", "192.0.0.8", "192.0.2.1", "198.18.0.1"),
    *("198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
    "168.63.129.16",
    *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1"),
    *("2001:db8::1", "100::1", "3fff::1", "2001:20::1", "5f00::1"),
    # Embedded IPv4 addresses: mapped, compatible, NAT64, 6to4, Teredo, ISATAP.
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1"),
    *("::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a00:1"),
    *("2002:7f00:1::1", "2002:a00:1::", "2001:0:7f00:1::1", "2606:4700::5efe:7f00:1"),
    "2606:4700::200:5efe:7f00:1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_address_may_be_called(address: str) -> None:
    assert may_be_called(ip_address(address), private=False)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_non_public_address_may_not_be_called(address: str) -> None:
    assert not may_be_called(ip_address(address), private=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "192.168.1.1", "::1", "fd00::1"])
def test_operator_may_allow_private_addresses(address: str) -> None:
    assert may_be_called(ip_address(address), private=True)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "fd00:ec2::254"),
        *("fd20:ce::254", "fd00:42::42", "168.63.129.16", "::ffff:168.63.129.16", "192.0.0.192"),
        "fd00:ec2::254%1",
        *("224.0.0.1", "0.0.0.0"),
    ],
)
def test_metadata_services_may_never_be_called(address: str) -> None:
    assert not may_be_called(ip_address(address), private=True)


@pytest.mark.parametrize(
    "address",
    [
        *("2001:0:a9fe:a9fe::1", "2002:a9fe:a9fe::1", "64:ff9b:1::a9fe:a9fe"),
        *("fd00::5efe:a9fe:a9fe", "fd00::200:5efe:a9fe:a9fe"),
    ],
)
def test_private_address_that_embeds_an_ipv4_address_may_not_be_called(address: str) -> None:
    assert not may_be_called(ip_address(address), private=True)


def test_target_is_parsed() -> None:
    assert read_target(
        "https://Hooks.Example.org:8443/a/b?c=d", private=False
    ) == NotificationTarget("https", "hooks.example.org", 8443, "/a/b?c=d")


def test_target_without_a_path_has_the_root_path() -> None:
    assert read_target("https://example.org", private=False).path == "/"


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("", "invalid"),
        ("example.org/hook", "scheme"),
        ("http://example.org/", "scheme"),
        ("ftp://example.org/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("gopher://example.org/_x", "scheme"),
        ("https:///path", "invalid"),
        ("https://user:password@example.org/", "invalid"),
        ("https://example.org@127.0.0.1/", "invalid"),
        ("https://example.org/#secret", "invalid"),
        ("https://exa mple.org/", "invalid"),
        ("https://example.org/\r\nX-Injected: 1", "invalid"),
        ("https://example.org/\tx", "invalid"),
        ("https://bücher.example/", "invalid"),
        ("https://example.org\\@127.0.0.1/", "invalid"),
        ("https://[::1/", "invalid"),
        ("https://a..b/", "invalid"),
        ("https://" + "a" * 64 + ".org/", "invalid"),
        ("https://example.org/" + "a" * 500, "invalid"),
        ("https://example.org:99999/", "invalid"),
        ("https://example.org:22/", "port"),
        ("https://example.org:5432/", "port"),
        ("https://127.0.0.1/", "address"),
        ("https://[::1]/", "address"),
        ("https://[::ffff:10.0.0.1]/", "address"),
        ("https://169.254.169.254/latest/meta-data/", "address"),
        ("https://[fe80::1%25eth0]/", "address"),
    ],
)
def test_invalid_target_is_rejected(address: str, code: str) -> None:
    with pytest.raises(TargetError) as refusal:
        read_target(address, private=False)
    assert refusal.value.code == code


def test_operator_may_allow_plain_http_on_any_port() -> None:
    assert read_target("http://hooks.lan:5000/", private=True).port == 5000


def test_ntfy_topic_is_published_at_the_root_of_the_server() -> None:
    assert read_topic("https://ntfy.sh/my-topic", private=False) == (
        NotificationTarget("https", "ntfy.sh", 443, "/"),
        "my-topic",
    )


@pytest.mark.parametrize("path", ["", "/", "/a/b", "/a?auth=x", "/" + "a" * 65, "/a%2Fb"])
def test_invalid_ntfy_topic_is_rejected(path: str) -> None:
    with pytest.raises(TargetError):
        read_topic(f"https://ntfy.sh{path}", private=False)
