"""`swarm-node lab report`, `pack` and `summary`: from the raw runs to what is shown of them."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from node_client.commands.problems import explain_problems

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


@explain_problems
def report(
    folder: Folder, *, out: PageFile = None, take_off_at: TakeOff = None, plotly: PlotlyFile = None
) -> None:
    """Draw an experiment: a page and, beside it, its numbers as JSON, from the raw runs alone."""
    console = Console()
    with console.status("Reading"):
        from node_client.lab.report.making import encode_report, make_report
        from node_client.lab.report.page import make_page, read_plotly
        from node_client.lab.results import read_results  # imports torch and transformers

        script = read_plotly(plotly)
        made = make_report(read_results(folder), take_off_at=take_off_at)
        page = out or folder / "report.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(make_page(made, plotly=script), encoding="utf-8")
        numbers = page.with_suffix(".json")
        numbers.write_bytes(encode_report(made))
    console.print(made.headline)
    for note in made.notes:
        console.print(note, style="yellow")
    console.print(f"The page is {page}, its numbers are in {numbers}.")


@explain_problems
def pack(folder: Folder) -> None:
    """Compress the finished runs of an experiment, to keep them in a repository."""
    from node_client.lab.packing import pack as pack_runs

    packed = pack_runs(folder)
    size = sum(path.stat().st_size for path in packed)
    typer.echo(f"Packed {len(packed)} runs into {size:,} bytes.")


@explain_problems
def summary(
    folder: Annotated[Path, typer.Argument(help="The folder with summary.toml (docs/lab.md)")],
) -> None:
    """Say what several reports answer together: summary.json, from summary.toml."""
    import msgspec

    from node_client.lab.summary import make_summary  # imports torch and transformers

    answers = make_summary(folder)
    content = msgspec.json.format(msgspec.json.encode(answers), indent=2)
    (folder / "summary.json").write_bytes(content + b"\n")
    for question, answer in answers.items():
        typer.echo(f"{question}: {answer['sentence']}")
