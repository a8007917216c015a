"""`swarm-node lab`: controlled experiments with whole swarms on this machine."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from node_client.commands import lab_reports
from node_client.commands.problems import explain_problems
from node_client.errors import SettingsError
from node_client.site import parse_site

if TYPE_CHECKING:
    from node_client.lab.config import Experiment

app = typer.Typer(
    name="lab",
    help="Test an idea: whole swarms of small models on this machine, arm against arm.",
    no_args_is_help=True,
)
app.command()(lab_reports.report)
app.command()(lab_reports.pack)
app.command()(lab_reports.summary)

ConfigFile = Annotated[Path, typer.Argument(help="The experiment, a TOML file (docs/lab.md)")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", help="Where results go; var/lab/NAME if left out")
]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; as many as cores if left out")
]


Through = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Make one run with real clients of this coordinator"),
]
Tokens = Annotated[Path | None, typer.Option(help="With --through: a folder of token files")]
ArmName = Annotated[str | None, typer.Option("--arm", help="With --through: the arm")]
Seed = Annotated[int | None, typer.Option(help="With --through: the seed")]


@app.command()
@explain_problems
def run(
    config: ConfigFile,
    *,
    out: OutFolder = None,
    processes: Processes = None,
    through: Through = None,
    tokens: Tokens = None,
    arm: ArmName = None,
    seed: Seed = None,
) -> None:
    """Make the runs of an experiment that are missing; after Ctrl-C the same command resumes."""
    console = Console()
    experiment = _read(config, console)
    folder = out or Path("var/lab") / experiment.name
    from node_client.lab.running import missing_runs, run_all  # imports torch and transformers

    missing_runs(experiment, folder)  # refuses runs of another design, before its file goes
    folder.mkdir(parents=True, exist_ok=True)
    copied = folder / "experiment.toml"
    if config.resolve() != copied.resolve():
        shutil.copyfile(config, copied)
    if through is not None:
        _run_through(experiment, folder, through, tokens=tokens, arm=arm, seed=seed)
        return
    run_all(experiment, folder, processes=processes, console=console)
    console.print(f"All runs are in {folder}. `swarm-node lab report {folder}` shows the results.")


@app.command()
@explain_problems
def estimate(
    config: ConfigFile,
    *,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="Try Qwen2.5-0.5B's shape, not the base")
    ] = False,
) -> None:
    """Try an experiment for a few rounds, and say how long all of it would take on this machine."""
    console = Console()
    experiment = _read(config, console)
    with console.status("Trying three rounds of one node"), TemporaryDirectory() as folder:
        import msgspec

        from node_client.lab import estimating

        if random_weights:
            base = estimating.write_half_billion(Path(folder))
            experiment = msgspec.structs.replace(experiment, base=str(base))
        found = estimating.estimate(experiment)
    console.print(
        f"One step of one node: {found.seconds:.2f} s, {found.tokens:.0f} tokens generated.\n"
        f"{found.node_steps:,} steps in all: {found.hours:,.1f} hours of one core or one GPU like"
        " this.\n"
        f"One node takes {found.bytes_per_node / 1e9:.2f} GB; a run has {found.nodes} nodes in"
        f" memory: {found.nodes * found.bytes_per_node / 1e9:.1f} GB."
    )


def _read(config: Path, console: Console) -> "Experiment":
    """Return the experiment of a file, with every base that it starts from made."""
    with console.status("Starting"):
        from node_client.lab.bases import make_bases  # imports torch and transformers
        from node_client.lab.config import read_experiment

        experiment = read_experiment(config)
    make_bases(experiment, console=console)
    return experiment


def _run_through(
    experiment: "Experiment",
    folder: Path,
    url: str,
    *,
    tokens: Path | None,
    arm: str | None,
    seed: int | None,
) -> None:
    from node_client.lab.runs import Run
    from node_client.lab.through import run_through

    arms = {each.name: each for each in experiment.arms}
    if tokens is None or arm not in arms or seed not in experiment.seeds:
        raise SettingsError(
            "A run through a coordinator needs --tokens, --arm and --seed.",
            fix=f"The arms are {', '.join(arms)}; the seeds {experiment.seeds}.",
        )
    run_through(
        experiment,
        Run(folder, arms[arm], seed),
        site=parse_site(url),
        tokens=sorted(path for path in tokens.iterdir() if path.is_file()),
        console=Console(),
    )
