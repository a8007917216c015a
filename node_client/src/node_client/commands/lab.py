"""`swarm-node lab`: controlled experiments with whole swarms on this machine."""

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from node_client.errors import SettingsError
from node_client.site import parse_site

if TYPE_CHECKING:
    from node_client.lab.config import Experiment


app = typer.Typer(
    name="lab",
    help="Experiments: whole swarms of small models on this machine, arm against arm.",
    no_args_is_help=True,
)

ConfigFile = Annotated[Path, typer.Argument(help="The experiment, a TOML file (docs/lab.md)")]
OutFolder = Annotated[
    Path | None, typer.Option("--out", help="The folder of the results; default: var/lab/NAME")
]
Processes = Annotated[
    int | None, typer.Option(min=1, help="Runs at a time; default: the number of cores")
]


Through = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Make one run with real clients of this coordinator"),
]
Tokens = Annotated[Path | None, typer.Option(help="With --through: a folder of token files")]
ArmName = Annotated[str | None, typer.Option("--arm", help="With --through: the arm")]
Seed = Annotated[int | None, typer.Option(help="With --through: the seed")]
Folder = Annotated[Path, typer.Argument(help="The experiment's folder, of `lab run --out`")]
PageFile = Annotated[
    Path | None, typer.Option("--out", help="The page; report.html in the folder if left out")
]
TakeOff = Annotated[
    float | None,
    typer.Option(
        min=0, help="Own reward of a run that has taken off; half of the best arm's if left out"
    ),
]
PlotlyFile = Annotated[
    Path | None,
    typer.Option("--plotly", help="A file of plotly.js; the package's (4.8 MB) if left out"),
]


@app.command()
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
    """Make the missing runs of an experiment; after Ctrl-C the same command resumes."""
    console = Console()
    experiment = _read(config, console)
    folder = out or Path("var/lab") / experiment.name
    from node_client.lab.running import missing_runs, run_all  # imports torch and transformers

    missing_runs(
        experiment, folder
    )  # refuses runs of another design before its file is overwritten
    folder.mkdir(parents=True, exist_ok=True)
    copied = folder / "experiment.toml"
    if config.resolve() != copied.resolve():
        shutil.copyfile(config, copied)
    if through is not None:
        _run_on_site(experiment, folder, through, tokens=tokens, arm=arm, seed=seed)
        return
    run_all(experiment, folder, processes=processes, console=console)
    console.print(f"All runs are in {folder}. `swarm-node lab report {folder}` shows the results.")


@app.command()
def estimate(
    config: ConfigFile,
    *,
    random_weights: Annotated[
        bool,
        typer.Option("--random-weights", help="Use the shape of Qwen2.5-0.5B instead of the base"),
    ] = False,
) -> None:
    """Run an experiment for a few rounds, and estimate its duration on this machine."""
    console = Console()
    experiment = _read(config, console)
    with console.status("Running three rounds of one node"), TemporaryDirectory() as folder:
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
    """Read an experiment from a file, and create those of its base models that are missing."""
    with console.status("Starting"):
        from node_client.lab.bases import make_bases  # imports torch and transformers
        from node_client.lab.config import read_experiment

        experiment = read_experiment(config)
    make_bases(experiment, console=console)
    return experiment


def _run_on_site(
    experiment: "Experiment",
    folder: Path,
    url: str,
    *,
    tokens: Path | None,
    arm: str | None,
    seed: int | None,
) -> None:
    from node_client.lab.runs import Run
    from node_client.lab.through import run_on_site

    arms = {each.name: each for each in experiment.arms}
    if tokens is None or arm not in arms or seed not in experiment.seeds:
        raise SettingsError(
            "A run through a coordinator needs --tokens, --arm and --seed.",
            fix=f"The arms are {', '.join(arms)}; the seeds {experiment.seeds}.",
        )
    run_on_site(
        experiment,
        Run(folder, arms[arm], seed),
        site=parse_site(url),
        tokens=sorted(path for path in tokens.iterdir() if path.is_file()),
        console=Console(),
    )


@app.command()
def report(
    folder: Folder, *, out: PageFile = None, take_off_at: TakeOff = None, plotly: PlotlyFile = None
) -> None:
    """Write a page with the results of an experiment's runs, and its numbers as a JSON file."""
    page = out or folder / "report.html"
    numbers = page.with_suffix(".json")
    if page.suffix.lower() == numbers.suffix:
        raise SettingsError(
            f"{page} is the name of the file with the numbers, which is beside the page.",
            fix="Give --out a name that ends in .html.",
        )
    console = Console()
    with console.status("Reading"):
        from node_client.lab.report.making import encode_report, make_report
        from node_client.lab.report.page import make_page, read_plotly
        from node_client.lab.results import read_results  # imports torch and transformers

        script = read_plotly(plotly)
        result = make_report(read_results(folder), take_off_at=take_off_at)
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make_page(result, plotly=script), encoding="utf-8")
        numbers.write_bytes(encode_report(result))
    console.print(result.headline)
    for note in result.notes:
        console.print(note, style="yellow")
    console.print(f"The page is {page}, its numbers are in {numbers}.")


@app.command()
def pack(folder: Folder) -> None:
    """Compress the finished runs of an experiment, to keep them in a repository."""
    from node_client.lab.records import pack_runs

    packed = pack_runs(folder)
    size = sum(path.stat().st_size for path in packed)
    typer.echo(f"Packed {len(packed)} runs into {size:,} bytes.")


@app.command()
def summary(
    folder: Annotated[Path, typer.Argument(help="The folder with summary.toml (docs/lab.md)")],
) -> None:
    """Answer the questions in summary.toml from several reports, and write summary.json."""
    import msgspec

    from node_client.lab.summary import make_summary  # imports torch and transformers

    answers = make_summary(folder)
    content = msgspec.json.format(msgspec.json.encode(answers), indent=2)
    (folder / "summary.json").write_bytes(content + b"\n")
    for question, answer in answers.items():
        typer.echo(f"{question}: {answer['sentence']}")
