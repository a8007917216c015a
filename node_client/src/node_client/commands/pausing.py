"""`swarm-node pause` and `resume`: wishes that a node reads from its state folder."""

from datetime import MAXYEAR, UTC, datetime, timedelta
from typing import Annotated

import typer

from node_client.commands.problems import explain_problems
from node_client.errors import SettingsError
from node_client.settings.config import choose
from node_client.settings.durations import parse_duration
from node_client.settings.flags import Flags, takes_settings
from node_client.site import parse_site
from node_client.storage.pauses import withdraw_wish, write_wish
from node_client.storage.state import StateDir

Url = Annotated[str | None, typer.Argument(help="The coordinator; without, all nodes of this user")]

app = typer.Typer()


@app.command()
@explain_problems
@takes_settings("state_dir", "config")
def pause(
    url: Url = None,
    *,
    length: Annotated[
        str | None, typer.Option("--for", help="How long, such as 90m, 2h or 1d; else until resume")
    ] = None,
    flags: Flags,
) -> None:
    """Let a node pause after its step: it saves, says goodbye and leaves the machine to others."""
    span = parse_duration(length, option="--for") if length is not None else None
    now = datetime.now(UTC)
    until = _end_of(now, span) if span is not None else None
    for state in _folders(url, flags):
        write_wish(state, now=now, until=until)
        end = "until `swarm-node resume`" if until is None else f"until {_local(until)}"
        if state.is_held():
            typer.echo(f"{_name(state)} pauses after its step, {end}.")
        else:
            typer.echo(f"{_name(state)} is not running; started again, it pauses {end}.")


@app.command()
@explain_problems
@takes_settings("state_dir", "config")
def resume(url: Url = None, *, flags: Flags) -> None:
    """Let a node that was paused go on. Hours and battery pause it all the same."""
    for state in _folders(url, flags):
        if not withdraw_wish(state):
            typer.echo(f"{_name(state)} was not paused by `swarm-node pause`.")
        elif state.is_held():
            typer.echo(f"{_name(state)} goes on.")
        else:
            typer.echo(f"{_name(state)} is not running; started again, it does not pause.")


def _end_of(now: datetime, span: timedelta) -> datetime:
    try:
        return now + span
    except OverflowError as problem:
        raise SettingsError(
            f"--for reaches beyond the year {MAXYEAR}.",
            fix="Leave out --for to pause until `swarm-node resume`.",
        ) from problem


def _folders(url: str | None, flags: Flags) -> list[StateDir]:
    """Return the state folders that are meant. Raises SettingsError when none is there."""
    choices = choose(parse_site(url) if url else None, flags=flags)
    if choices.site is not None or choices.value("state_dir") is not None:
        folders = [choices.state]
    else:
        folders = StateDir.of_user()
    there = [state for state in folders if state.path.is_dir()]
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
