"""Test the launcher's own Valkey."""

from pathlib import Path

import pytest
import redis

from swarm_web.local.databases import prepare_valkey
from tests.processes import running


def test_valkey_requires_the_password(tmp_path: Path) -> None:
    server = prepare_valkey(tmp_path / "valkey")
    with running(server.process, log=tmp_path / "log"):
        with redis.Redis.from_url(server.url) as client:
            assert client.ping()
        stranger = server.url.replace((tmp_path / "valkey" / "password").read_text(), "guess")
        with (
            redis.Redis.from_url(stranger) as client,
            pytest.raises(redis.AuthenticationError, match=r"WRONGPASS|invalid"),
        ):
            client.ping()


def test_password_is_in_no_command_line_and_no_readable_file(tmp_path: Path) -> None:
    server = prepare_valkey(tmp_path / "valkey")
    password = (tmp_path / "valkey" / "password").read_text()
    assert password not in " ".join(server.process.argv)
    for path in (tmp_path / "valkey").iterdir():
        assert path.stat().st_mode & 0o077 == 0


def test_data_survives_a_restart(tmp_path: Path) -> None:
    first = prepare_valkey(tmp_path / "valkey")
    with running(first.process, log=tmp_path / "log"), redis.Redis.from_url(first.url) as client:
        client.set("kept", "42")
    second = prepare_valkey(tmp_path / "valkey")
    with running(second.process, log=tmp_path / "log"), redis.Redis.from_url(second.url) as client:
        assert client.get("kept") == b"42"
