"""What a person at a terminal may like to know, in a line."""

import sys
from pathlib import Path

import typer

from node_client.settings.config import Choices
from node_client.settings.sources import find_file


def mention_init(choices: Choices) -> None:
    """Tell of the first-run dialogue whoever joins a swarm for the first time without settings."""
    file = find_file(choices.value("config"), here=Path(), state=choices.state.path)
    known = choices.state.recall(choices.site).node
    if file is None and not known and choices.site is not None and sys.stderr.isatty():
        line = f"Note: `swarm-node init {choices.site.base}` finds settings for this machine."
        typer.secho(line, fg="yellow", err=True)
