"""`swarm-node status`: how the nodes of this machine are, for people, programs, health checks."""

from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Console

from node_client.commands.problems import FAILED, explain_problems
from node_client.settings.config import choose
from node_client.settings.durations import parse_duration
from node_client.settings.flags import Flags, takes_settings
from node_client.site import parse_site

app = typer.Typer()


@app.command()
@explain_problems
@takes_settings("state_dir", "config", "json")
def status(
    url: Annotated[
        str | None, typer.Argument(help="The coordinator, to show its figures too")
    ] = None,
    *,
    healthy: Annotated[
        bool, typer.Option("--healthy", help="Only check, here, that training goes on; else exit 1")
    ] = False,
    within: Annotated[
        str, typer.Option(help="With --healthy: how long a step may take, such as 10m or 2h")
    ] = "10m",
    flags: Flags,
) -> None:
    """Show how this machine's node stands, here and at its coordinator; or all its nodes, here."""
    from node_client.commands.status import (  # imports httpx
        describe_status,
        draw_status,
        find_unhealthy,
        read_folders,
        read_status,
    )

    choices = choose(parse_site(url) if url else None, flags=flags)
    if healthy:
        span = parse_duration(within, option="--within")
        found = find_unhealthy(read_folders(choices), within=span, now=datetime.now(UTC))
        typer.echo("\n".join(found) or "Training goes on, or is paused.")
        if found:
            raise typer.Exit(FAILED)
    elif choices.value("json"):
        typer.echo("\n".join(map(describe_status, read_status(choices))))
    else:
        Console().print(draw_status(read_status(choices)))
