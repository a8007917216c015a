"""`swarm-node config`: all settings with their values and sources, and a template file."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices
from node_client.settings.fields import Setting, all_settings
from node_client.settings.flags import takes_settings
from node_client.settings.panels import panels
from node_client.settings.sources import FILE_NAME, Source

HIDDEN = "(set, not shown)"

app = typer.Typer(name="config", no_args_is_help=True, help="Show or write settings.")


@app.command()
@takes_settings()
def show(
    url: Annotated[
        str | None, typer.Argument(help="As for `join`; without it, as for `train`")
    ] = None,
    *,
    choices: SettingChoices,
) -> None:
    """Show every setting with its value and source; with --json as JSON."""
    if choices.value("json"):
        sys.stdout.write(json.dumps(describe(choices), indent=1) + "\n")
        return
    Console().print(render_settings(choices))


@app.command()
def init(
    out: Annotated[Path, typer.Option(help="The file to write")] = Path(FILE_NAME),
) -> None:
    """Write a new file that lists each setting except secrets, commented out, below its help."""
    try:
        with out.open("x", encoding="utf-8") as file:
            file.write(write_template())
    except OSError as problem:
        raise SettingsError(
            f"{out} was not written: {problem.strerror or problem}.",
            fix="Choose another file with --out, or move that one away.",
        ) from problem
    typer.echo(f"Wrote {out}. Remove the # from the lines that you want to change.")


def describe(choices: SettingChoices) -> dict[str, dict[str, Any]]:
    """Return each setting by name, as a dict of `value`, `source` and `place`, for JSON.

    The value of a secret that is set is replaced by HIDDEN. `source` is the kind of source, such as
    `file`; `place` says where the value was given, such as the path of that file.
    """
    rows = {}
    for name, setting in all_settings().items():
        given = choices.get(setting)
        value = HIDDEN if setting.secret and given.value else given.value
        shown = str(value) if isinstance(value, Path) else value
        rows[name] = {"value": shown, "source": str(given.source), "place": given.place}
    return rows


def render_settings(choices: SettingChoices) -> Table:
    """Return a table of all settings with their values and sources; defaults are dimmed.

    The values of secrets are not shown.
    """
    table = Table("setting", "value", "from", box=SIMPLE_HEAD, pad_edge=False)
    for heading, settings in panels().items():
        table.add_section()
        table.add_row(Text(heading, "bold", overflow="fold"))
        for setting in settings:
            given = choices.get(setting)
            cells = (setting.name, _show(setting, given.value), given.place)
            style = "dim" if given.source is Source.DEFAULT else ""
            table.add_row(*(Text(cell, overflow="fold") for cell in cells), style=style)
    return table


def write_template() -> str:
    """Return the text of a swarm-node.toml with every setting commented out, below its help.

    Secrets are left out, and so is `config`, the path of the file itself.
    """
    parts = ["# Settings of swarm-node. Command line and environment have priority.\n"]
    for heading, group in panels().items():
        parts.append(f"\n# {heading}\n")
        for setting in group:
            if setting.secret or setting.name == "config":
                continue
            parts.append(f"\n# {setting.help}\n# {setting.name} = {_as_toml(setting)}\n")
    return "".join(parts)


def _show(setting: Setting, value: object) -> str:
    if setting.secret:
        return HIDDEN if value else "none"
    if isinstance(value, tuple):
        return ",".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return "none" if value is None or value == "" else str(value)


def _as_toml(setting: Setting) -> str:
    """Return the setting's default in TOML, or a comment with allowed values if it has none."""
    if setting.default is None:
        return f"  # {setting.allowed}"
    # JSON is valid TOML for numbers, strings, lists and booleans.
    return json.dumps(setting.default)
