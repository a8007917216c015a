"""Test the helpers for ports on loopback."""

import socket
from pathlib import Path

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.__main__ import main
from swarm_web.local.probes import HOST, free_port, require_free


def test_free_port_is_accepted() -> None:
    require_free(free_port())


def test_used_port_is_rejected_with_a_suggestion() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=f"Port {port} .*PORT={port + 1}"):
            require_free(port)


@pytest.mark.parametrize("port", [-1, 0, 65536])
def test_port_that_does_not_exist_is_rejected(port: int) -> None:
    with pytest.raises(LaunchError, match=f"Port {port} does not exist"):
        require_free(port)


def test_failed_start_says_only_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["up", "--port", str(port), "--state-dir", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert f"Stopped: Port {port} cannot be used" in line
