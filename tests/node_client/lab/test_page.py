import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import plotly.graph_objects as go
import pytest

from node_client.errors import NodeError
from node_client.lab.report.figures import PlotlyFigure, plot_all, plot_onset
from node_client.lab.report.making import make_report
from node_client.lab.report.page import make_page, read_plotly
from node_client.lab.report.shape import Report
from node_client.lab.results import read_results
from tests.node_client.lab.folders import ALONE, LabFolder

PLOTLY = "/* plotly.js */"
HOSTILE = '</script><b title="x">'


@pytest.fixture
def report(tmp_path: Path) -> Report:
    attacked = '[[arms]]\nname = "4/4"\n[[arms.groups]]\nnodes = 2\n'
    lab = LabFolder(tmp_path, arms=ALONE + attacked, seeds=[1, 2, 3, 4])
    lab.add_all({"8/0": [0.1, 0.3]})
    for seed in lab.seeds:
        lab.add("4/4", seed, [0.3, 0.5], poisoned=[0.1, 0.1], reflection=[0.2, 0.2])
    return make_report(read_results(tmp_path))


def all_figures(report: Report) -> list[PlotlyFigure]:
    return [*plot_all(report), *(plot_onset(onset, report) for onset in report.onsets)]


def drawn_in(page: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page)
    assert found is not None
    drawn: dict[str, Any] = json.loads(found[1])
    return drawn


def test_plotly_accepts_every_figure(report: Report) -> None:
    for figure in all_figures(report):
        assert go.Figure(data=figure.data, layout=figure.layout).data


def test_every_figure_is_on_the_page_with_its_table(report: Report) -> None:
    page = make_page(report, plotly=PLOTLY)
    figures = all_figures(report)
    assert set(drawn_in(page)) == {figure.key for figure in figures}
    for figure in figures:
        assert f'data-figure="{figure.key}"' in page
        assert f"<caption>{figure.title}</caption>" in page
        assert figure.table.rows


def test_every_measured_curve_is_drawn(report: Report) -> None:
    keys = {figure.key for figure in plot_all(report)}
    assert keys >= {"cumulative", "own", "held_out", "length", "reflection", "poisoned"}


def test_page_loads_no_external_resource(report: Report) -> None:
    page = make_page(report, plotly=PLOTLY)
    assert re.findall(r"""(?:src|href)=|url\(|@import""", page) == []
    assert PLOTLY in page


def test_markup_in_texts_of_an_experiment_is_escaped(report: Report) -> None:
    page = make_page(
        msgspec.structs.replace(report, question=HOSTILE, headline=HOSTILE, settings=HOSTILE),
        plotly=PLOTLY,
    )
    assert HOSTILE not in page
    assert drawn_in(page)


def test_markup_in_names_of_arms_cannot_end_the_script(report: Report) -> None:
    arm = msgspec.structs.replace(report.arms[0], name=HOSTILE)
    hostile = msgspec.structs.replace(report, arms=[arm, *report.arms[1:]])
    page = make_page(hostile, plotly=PLOTLY)
    assert HOSTILE not in page
    assert drawn_in(page)["cumulative"]["data"][-2]["name"] == "4/4"


def test_exploratory_report_is_marked(report: Report) -> None:
    explored = msgspec.structs.replace(report, phase="exploratory")
    assert '<span class="phase exploratory">exploratory</span>' in make_page(
        explored, plotly=PLOTLY
    )


def test_figures_of_the_paper_are_shown_for_comparison(report: Report) -> None:
    page = make_page(report, plotly=PLOTLY)
    assert all(figure in page for figure in ("561.79", "854.43", "1,093.31", "945.87", "+94 %"))


def test_plotly_is_read_from_the_package() -> None:
    assert "Plotly" in read_plotly(None)


def test_missing_plotly_is_reported_with_the_extra_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(NodeError) as caught:
        read_plotly(None)
    assert "swarm-node[lab]" in caught.value.fix


def test_plotly_can_be_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "plotly.js").write_text(PLOTLY, encoding="utf-8")
    assert read_plotly(tmp_path / "plotly.js") == PLOTLY
    with pytest.raises(NodeError, match="cannot be read"):
        read_plotly(tmp_path / "other.js")
