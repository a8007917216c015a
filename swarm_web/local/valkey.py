"""Valkey (or Redis) of this machine's own: loopback only, behind a password."""

import socket
from pathlib import Path

from swarm_web.local.binaries import find_valkey
from swarm_web.local.parts import Part
from swarm_web.local.ports import HOST, free_port
from swarm_web.local.servers import LocalServer
from swarm_web.local.state import keep_secret

_PROBE_TIMEOUT_S = 1.0


def prepare_valkey(folder: Path) -> LocalServer:
    """Write the configuration into `folder` and return the server, not yet started.

    Raises LaunchError when no program is found.
    """
    program = find_valkey()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    password = keep_secret(folder / "password")
    port = free_port()
    # In a file of mode 0600: a command line can be read by every user of the machine.
    configuration = folder / "valkey.conf"
    configuration.touch(mode=0o600)
    configuration.write_text(
        f"bind {HOST}\nport {port}\nrequirepass {password}\n"
        "daemonize no\n"
        "dir .\n"
        "save 60 1\n"
        "maxmemory 1gb\n"
        "maxmemory-policy noeviction\n"
        "loglevel warning\n"
    )
    part = Part(
        name="valkey",
        command=(str(program), configuration.name),
        folder=folder,
        is_ready=lambda: _answers(port, password),
        ready_within_s=20.0,
        stop_within_s=1.0,
    )
    return LocalServer(part=part, url=f"redis://:{password}@{HOST}:{port}/0")


def _answers(port: int, password: str) -> bool:
    """Say whether the server has loaded its data and lets us in."""
    try:
        with socket.create_connection((HOST, port), timeout=_PROBE_TIMEOUT_S) as connection:
            connection.sendall(f"AUTH {password}\r\nPING\r\n".encode())
            answer = b""
            while answer.count(b"\r\n") < 2 and (chunk := connection.recv(256)):
                answer += chunk
    except OSError:
        return False
    return answer == b"+OK\r\n+PONG\r\n"
