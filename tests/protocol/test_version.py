"""Versions are compared as numbers."""

import pytest

from swarm_protocol.version import CLIENT_VERSION, parse_version


def test_versions_compare_as_numbers() -> None:
    assert parse_version("0.10.0") > parse_version("0.9.9")


def test_the_clients_own_version_can_be_read() -> None:
    assert parse_version(CLIENT_VERSION)


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "1.2.x", "v1.2.3", "1..2"])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  int's own words, which change.
        parse_version(text)
