"""Parsing of version numbers."""

import pytest

from swarm_protocol.version import CLIENT_VERSION, parse_version


def test_versions_compare_as_numbers() -> None:
    assert parse_version("0.10.0") > parse_version("0.9.9")


def test_client_version_is_parsed() -> None:
    assert parse_version(CLIENT_VERSION)


@pytest.mark.parametrize("text", ["", "1", "1.2", "1.2.3.4", "1.2.x", "v1.2.3", "1..2"])
def test_invalid_version_raises_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the message is int's own and may change
        parse_version(text)
