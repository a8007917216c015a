"""A report as one self-contained HTML file, which opens without a network."""

import json
from importlib import resources
from pathlib import Path

import jinja2

from node_client.errors import NodeError
from node_client.lab.report.figures import PlotlyFigure, plot_all, plot_onset
from node_client.lab.report.shape import Report
from node_client.lab.report.tables import (
    comparison_table,
    horizon_table,
    main_table,
    paper_table,
    reached_table,
    seed_table,
    steadiness_table,
)


def make_page(report: Report, *, plotly: str) -> str:
    """Return the report's page as HTML. `plotly` is the source of plotly.js."""
    figures = plot_all(report)
    onsets = [plot_onset(onset, report) for onset in report.onsets]
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("node_client.lab.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("page.html").render(
        report=report,
        figures=figures,
        onsets=onsets,
        tables={
            "main": main_table(report),
            "steadiness": steadiness_table(report),
            "horizons": horizon_table(report) if report.horizons else None,
            "reached": reached_table(report) if report.reached else None,
            "comparisons": comparison_table(report),
            "seeds": seed_table(report),
            "paper": paper_table(report),
        },
        style=_read("page.css"),
        script=_read("page.js"),
        plotly=plotly,
        drawn=_as_script([*figures, *onsets]),
    )


def read_plotly(path: Path | None) -> str:
    """Return the source of plotly.js.

    It is read from the file `path`, or from the package `plotly` if `path` is None. Raises
    NodeError if the file cannot be read or the package is not installed.
    """
    if path is not None:
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            raise NodeError(
                f"plotly.js cannot be read: {problem}.",
                fix="Give a file of plotly.js, or leave the option out to use the package's.",
            ) from problem
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as problem:
        raise NodeError(
            "The package plotly is not installed, which the page needs.",
            fix="Install plotly, or the client with its extra: 'swarm-node[lab]'.",
        ) from problem
    return str(get_plotlyjs())


def _as_script(figures: list[PlotlyFigure]) -> str:
    """Return Plotly's figures as JSON that is safe inside a script element."""
    drawn = {figure.key: {"data": figure.data, "layout": figure.layout} for figure in figures}
    return json.dumps(drawn, separators=(",", ":"), ensure_ascii=True).replace("<", "\\u003c")


def _read(name: str) -> str:
    return resources.files("node_client.lab.report").joinpath(name).read_text(encoding="utf-8")
