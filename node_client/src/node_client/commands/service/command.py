"""The commands of `swarm-node service`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from node_client.commands.joining import get_token, save_token
from node_client.commands.service.unit import ServiceUnit
from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices, choose, find_token
from node_client.settings.flags import takes_settings
from node_client.settings.sources import Source
from node_client.site import Site, parse_site
from node_client.storage.state import StateDir

app = typer.Typer(
    name="service", no_args_is_help=True, help="Keep a node running as a service of this user."
)

Url = Annotated[str, typer.Argument(help="The coordinator, such as https://swarm.example.org")]


@app.command()
@takes_settings("token_file", "token", "state_dir", "config", "auto_update")
def install(
    url: Url,
    *,
    shown: Annotated[
        bool, typer.Option("--print", help="Only print the unit; install nothing")
    ] = False,
    choices: SettingChoices,
) -> None:
    """Install and start a service that joins the swarm. Run it again to apply new settings.

    Settings come from swarm-node.toml in the state folder. With --auto-update the service installs
    code that the coordinator offers, so use it only if you trust the operator.
    """
    manager, plan = _manager(), _plan(choices)
    if shown:
        typer.echo(manager.describe(plan), nl=False)
        return
    _remember_token(choices)
    with _changing(plan):
        manager.install(plan)
    typer.echo(f"Installed and started {plan.name}, with the settings in {plan.state}.")
    if hint := manager.describe_lingering():
        typer.echo(hint)


@app.command()
@takes_settings("state_dir")
def uninstall(url: Url, *, choices: SettingChoices) -> None:
    """Stop and remove the service; the node's token and checkpoints stay."""
    plan = _plan(choices)
    with _changing(plan):
        removed = _manager().uninstall(plan)
    if not removed:
        raise SettingsError(
            f"There is no service {plan.name}.", fix="`swarm-node service install URL` creates one."
        )
    typer.echo(f"Removed {plan.name}. Token and checkpoints stay in {plan.state}.")


@app.command()
def status(url: Url) -> None:
    """Show the state of the service; `swarm-node status URL` shows the state of the node."""
    _manager().show_status(_plan(choose(parse_site(url), flags={})))


@app.command()
@takes_settings("state_dir")
def logs(
    url: Url,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep showing new lines")] = False,
    choices: SettingChoices,
) -> None:
    """Show the output of the service."""
    _manager().show_logs(_plan(choices), follow=follow)


@app.command()
@takes_settings("state_dir", "config", "auto_update", "wait_when_refused")
def run(url: Url, *, choices: SettingChoices) -> None:
    """With --auto-update, install a newer client if the node asked for one. Then join the swarm.

    This is the command of the service. Other supervisors may use it too.
    """
    site = choices.coordinator
    if choices.value("auto_update"):
        _upgrade(site, choices.state)
    options = [
        word
        for name, given in choices.given.items()
        if given.source is Source.FLAG
        for word in _option(name, given.value)
    ]
    arguments = [sys.executable, "-m", "node_client", "join", site.base, "--plain", *options]
    sys.stdout.flush()
    os.execv(sys.executable, arguments)


def _upgrade(site: Site, state: StateDir) -> None:
    """Install a newer client if the node requested one, and print the result or the error."""
    from node_client.commands.service.upgrading import upgrade_if_requested

    try:
        result = upgrade_if_requested(site, state, now=datetime.now(UTC))
    except (OSError, SettingsError) as problem:
        result = f"not updated: {problem}"
    if result is not None:
        typer.echo(result)


def _option(name: str, value: object) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [flag] if value else [flag.replace("--", "--no-", 1)]
    return [flag, str(value)]


def _plan(choices: SettingChoices) -> ServiceUnit:
    config: Path | None = choices.value("config")
    return ServiceUnit(
        site=choices.coordinator,
        # Not resolved: a virtual environment's Python is a link out of it.
        python=Path(sys.executable).absolute(),
        state=choices.state.path.absolute(),
        config=config.absolute() if config is not None else None,
        auto_update=choices.value("auto_update"),
    )


def _manager() -> ModuleType:
    """Return the module `systemd` or `launchd`. Raises SettingsError on any other system."""
    if sys.platform == "linux":
        from node_client.commands.service import systemd

        return systemd
    if sys.platform == "darwin":
        from node_client.commands.service import launchd

        return launchd
    raise SettingsError(
        "Services are managed with systemd or launchd, and this system has neither.",
        fix="Let the system's own scheduler run `swarm-node join URL` at log-in.",
    )


@contextmanager
def _changing(plan: ServiceUnit) -> Iterator[None]:
    """Raise SettingsError if the body raises OSError because of the service's file."""
    try:
        yield
    except OSError as problem:
        raise SettingsError(
            f"The service {plan.name} cannot be changed: {problem}.",
            fix="Check the owner of this file and the free space, and run this again.",
        ) from problem


def _remember_token(choices: SettingChoices) -> None:
    """Save the token in the state folder, where the service reads it.

    The unit does not contain the token, because other users can read the unit. If the settings have
    no token, get one with a code that a person approves. Raises NodeError when the site gives no
    token, SettingsError when the token cannot be saved.
    """
    token = find_token(choices)
    if not token:
        get_token(choices, console=Console())
    elif token != choices.state.load_for(choices.site).token:
        save_token(choices, token)
