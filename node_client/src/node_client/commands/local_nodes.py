"""`swarm-node status`, `pause` and `resume`: commands about the nodes of this machine."""

from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.console import Console

from node_client.commands.problems import FAILED
from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices
from node_client.settings.flags import takes_settings
from node_client.settings.hours import parse_duration
from node_client.storage.pauses import request_pause, withdraw_pause
from node_client.storage.state import StateDir

Url = Annotated[
    str | None, typer.Argument(help="The coordinator; by default all nodes of this user")
]

app = typer.Typer()


@app.command()
@takes_settings("state_dir", "config", "json")
def status(
    url: Annotated[
        str | None, typer.Argument(help="The coordinator, to show its figures too")
    ] = None,
    *,
    healthy: Annotated[
        bool,
        typer.Option("--healthy", help="Only check that training continues; otherwise exit with 1"),
    ] = False,
    within: Annotated[
        str, typer.Option(help="With --healthy: maximum duration of a step, such as 10m or 2h")
    ] = "10m",
    choices: SettingChoices,
) -> None:
    """Show the status of a node, here and at its coordinator, or of all nodes of this machine."""
    from node_client.commands.status import (  # imports httpx
        describe_status,
        find_unhealthy,
        read_status,
        render_status,
    )

    if healthy:
        duration = parse_duration(within, option="--within")
        found = find_unhealthy(choices.folders, within=duration, now=datetime.now(UTC))
        typer.echo("\n".join(found) or "Training continues, or is paused.")
        if found:
            raise typer.Exit(FAILED)
    elif choices.value("json"):
        typer.echo("\n".join(map(describe_status, read_status(choices))))
    else:
        Console().print(render_status(read_status(choices)))


@app.command()
@takes_settings("state_dir", "config")
def pause(
    url: Url = None,
    *,
    length: Annotated[
        str | None,
        typer.Option("--for", help="Duration, such as 90m, 2h or 1d; by default until resume"),
    ] = None,
    choices: SettingChoices,
) -> None:
    """Pause a node after its current step: it saves, disconnects and frees the machine."""
    duration = parse_duration(length, option="--for") if length is not None else None
    now = datetime.now(UTC)
    until = _pause_end(now, duration) if duration is not None else None
    for state in _folders(choices):
        request_pause(state, now=now, until=until)
        end = "until `swarm-node resume`" if until is None else f"until {_local(until)}"
        if state.is_locked():
            typer.echo(f"{_name(state)} pauses after its step, {end}.")
        else:
            typer.echo(f"{_name(state)} is not running; after its next start it pauses {end}.")


@app.command()
@takes_settings("state_dir", "config")
def resume(url: Url = None, *, choices: SettingChoices) -> None:
    """End a pause. The settings hours and pause_on_battery may still pause the node."""
    for state in _folders(choices):
        if not withdraw_pause(state):
            typer.echo(f"{_name(state)} was not paused by `swarm-node pause`.")
        elif state.is_locked():
            typer.echo(f"{_name(state)} continues.")
        else:
            typer.echo(f"{_name(state)} is not running; after its next start it does not pause.")


def _pause_end(now: datetime, duration: timedelta) -> datetime:
    try:
        return now + duration
    except OverflowError as problem:
        raise SettingsError(
            f"--for ends after the year {MAXYEAR}.",
            fix="Leave out --for to pause until `swarm-node resume`.",
        ) from problem


def _folders(choices: SettingChoices) -> list[StateDir]:
    """Return the selected state folders that exist. Raises SettingsError when none of them does."""
    there = [state for state in choices.folders if state.path.is_dir()]
    if not there:
        raise SettingsError(
            f"No node has run here: there is no state folder {choices.state.path}.",
            fix="Name the coordinator, or the node's folder with --state-dir.",
        )
    return there


def _name(state: StateDir) -> str:
    remembered = state.load()
    return remembered.node or str(state.path)


def _local(moment: datetime) -> str:
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"
