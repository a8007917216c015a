"""TCP ports on loopback."""

import socket

from swarm_web.local.errors import LaunchError

HOST = "127.0.0.1"


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.create_server((HOST, 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def require_free(port: int) -> None:
    """Raise LaunchError when somebody listens on `port` already."""
    try:
        socket.create_server((HOST, port)).close()
    except OSError as error:
        raise LaunchError(
            f"Port {port} cannot be used ({error.strerror}). Stop what uses it, or choose another "
            f"one, for example `make demo PORT={port + 1}`."
        ) from error
