"""`swarm-node service`: a node that the user's systemd or launchd keeps running."""

from node_client.commands.service.command import app

__all__ = ["app"]
