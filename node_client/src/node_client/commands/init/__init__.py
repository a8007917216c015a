"""`swarm-node init`: inspects the machine, asks, and writes a first file of settings."""

from node_client.commands.init.command import app

__all__ = ["app"]
