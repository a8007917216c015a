import json
from pathlib import Path

from typer.testing import CliRunner, Result

from node_client.cli import app
from node_client.commands.problems import FAILED
from node_client.lab.report.making import read_report
from tests.node_client.lab.folders import LabFolder


def lab(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["lab", *map(str, arguments)])


def make_folder(path: Path) -> Path:
    folder = LabFolder(path / "sparse")
    folder.add_all({"8/0": [0.1, 0.3], "4/4": [0.3, 0.5]})
    (path / "plotly.js").write_text("/* plotly.js */", encoding="utf-8")
    return folder.path


def test_report_writes_the_page_and_its_numbers(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    result = lab("report", folder, "--plotly", tmp_path / "plotly.js")
    assert result.exit_code == 0, result.output
    assert "gain of 4/4 over 8/0" in " ".join(result.output.split())
    assert "Does sharing help?" in (folder / "report.html").read_text(encoding="utf-8")
    assert read_report(folder / "report.json").name == "sparse"


def test_report_is_written_to_the_given_path(tmp_path: Path) -> None:
    folder, out = make_folder(tmp_path), tmp_path / "docs" / "sparse.html"
    lab("report", folder, "--plotly", tmp_path / "plotly.js", "--out", out)
    assert out.exists()
    assert read_report(tmp_path / "docs" / "sparse.json").name == "sparse"


def test_report_refuses_the_name_of_its_numbers_for_the_page(tmp_path: Path) -> None:
    folder, out = make_folder(tmp_path), tmp_path / "sparse.json"
    result = lab("report", folder, "--plotly", tmp_path / "plotly.js", "--out", out)
    assert result.exit_code == FAILED
    assert "ends in .html" in result.output
    assert not out.exists()


def test_report_explains_what_is_wrong_with_a_folder(tmp_path: Path) -> None:
    (tmp_path / "plotly.js").touch()
    LabFolder(tmp_path)
    result = lab("report", tmp_path, "--plotly", tmp_path / "plotly.js")
    assert result.exit_code == FAILED
    assert "No run of the baseline 8/0 is finished" in result.output


def test_pack_compresses_every_run(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    assert "Packed 6 runs" in lab("pack", folder).output
    assert len(list((folder / "runs").glob("*.gz"))) == 6


def test_summary_writes_the_answers_of_the_reports(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    lab("report", folder, "--plotly", tmp_path / "plotly.js")
    claim = '[[claims]]\nanswers = "sparse"\nreport = "sparse"\narm = "4/4"\n'
    (tmp_path / "summary.toml").write_text(claim, encoding="utf-8")
    result = lab("summary", tmp_path)
    assert "sparse: Cumulative own reward: 4/4 against 8/0" in result.output
    assert json.loads((tmp_path / "summary.json").read_bytes())["sparse"]["gain"] == 2.0
