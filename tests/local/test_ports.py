"""Ports on loopback."""

import socket

import pytest

from swarm_web.local import LaunchError
from swarm_web.local.probes import HOST, free_port, require_free


def test_a_free_port_can_be_taken() -> None:
    require_free(free_port())


def test_a_port_in_use_is_refused_with_advice() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(LaunchError, match=f"Port {port} .*PORT={port + 1}"):
            require_free(port)
