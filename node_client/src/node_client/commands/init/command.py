"""The command `swarm-node init`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from node_client.errors import SettingsError
from node_client.settings.config import SettingChoices
from node_client.settings.flags import takes_settings
from node_client.settings.sources import FILE_NAME

app = typer.Typer()


@app.command()
@takes_settings("state_dir")
def init(
    url: Annotated[
        str | None, typer.Argument(help="The coordinator to join; without it, for `train`")
    ] = None,
    *,
    here: Annotated[
        bool, typer.Option("--here", help="Write the file here instead of the state folder")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Accept every proposal")] = False,
    choices: SettingChoices,
) -> None:
    """Inspect this machine, ask a few questions, and write a first swarm-node.toml."""
    console = Console()
    with console.status("Inspecting this machine"):
        from node_client.commands.init.asking import (  # imports torch
            accept_default,
            ask_questions,
            prompt,
            render_machine,
            write_settings,
        )
        from node_client.commands.init.machine import inspect_machine

        folder = choices.state.path
        machine = inspect_machine(folder)
    file = Path(FILE_NAME) if here else folder / FILE_NAME
    ask = accept_default if yes else prompt
    console.print(render_machine(machine), soft_wrap=True)
    text = write_settings(ask_questions(machine, ask=ask, console=console))
    typer.echo(f"\n{file} will be:\n\n{text}")
    question = "The file exists. Replace it?" if file.exists() else "Write it?"
    proposal = "n" if file.exists() else "y"
    if not ask(f"{question} (y/n)", proposal).strip().lower().startswith("y"):
        raise SettingsError(
            f"{file} was not written.", fix="Move the old one away, or answer y to replace it."
        )
    _write(file, text)
    words = ["swarm-node", *(["join", url] if url else ["train", "--offline"])]
    if (given := choices.value("state_dir")) is not None:
        words += ["--state-dir", str(given)]
    typer.echo(f"Wrote {file}. Next: {shlex.join(words)}")


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise SettingsError(
            f"{file} was not written: {problem.strerror or problem}.",
            fix="Choose another folder with --state-dir, or write it here with --here.",
        ) from problem
