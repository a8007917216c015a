"""What a local database server is to those who use it."""

from dataclasses import dataclass

from swarm_web.local.parts import Part


@dataclass(frozen=True)
class LocalServer:
    """A server that is ready to be started, and the address it will have then."""

    part: Part
    url: str
