"""Run the client as `python -m node_client`."""

from node_client.cli import app

app(prog_name="swarm-node")
