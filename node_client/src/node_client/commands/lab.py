"""`swarm-node lab`: controlled experiments with whole swarms on this machine."""

import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from node_client.commands.problems import explain_problems

app = typer.Typer(
    name="lab",
    help="Test an idea: whole swarms of small models on this machine, arm against arm.",
    no_args_is_help=True,
)

ConfigFile = Annotated[Path, typer.Argument(help="The experiment, a TOML file (docs/lab.md)")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", help="Where results go; var/lab/NAME if left out")
]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; as many as processors if left out")
]


@app.command()
@explain_problems
def run(config: ConfigFile, *, out: OutFolder = None, processes: Processes = None) -> None:
    """Make all runs of an experiment, or those that are missing; Ctrl-C and go on at any time."""
    console = Console()
    with console.status("Starting"):
        from node_client.lab.config import read_experiment
        from node_client.lab.running import run_all  # imports torch and transformers

        experiment = read_experiment(config)
    folder = out or Path("var/lab") / experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(config, folder / "experiment.toml")
    run_all(experiment, folder, processes=processes, console=console)
    console.print(f"All runs are in {folder}. `swarm-node lab report {folder}` draws them.")
