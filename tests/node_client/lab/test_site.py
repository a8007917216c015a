"""The site can read what the lab writes."""

import json
from pathlib import Path

import msgspec
import pytest
from pytest_django import Settings

from node_client.lab.report.making import encode_report, make_report
from node_client.lab.results import read_results
from node_client.lab.summary import make_summary
from swarm_web.lab.shelf import list_published, read_summary
from tests.dashboard import lab_reports
from tests.node_client.lab.folders import LabFolder

CLAIM = '[[claims]]\nanswers = "sparse"\nreport = "sparse"\narm = "4/4"\n'


@pytest.fixture
def published(tmp_path: Path, settings: Settings) -> Path:
    """Publish the report of an experiment, and a summary."""
    settings.LAB_REPORTS = [tmp_path]
    experiment = LabFolder(tmp_path / "sparse", seeds=[1, 2, 3, 4, 5, 6])
    experiment.add_all({"8/0": [0.2, 0.2], "4/4": [0.4, 0.4]})
    report = encode_report(make_report(read_results(tmp_path / "sparse")))
    (tmp_path / "sparse" / "report.json").write_bytes(report)
    (tmp_path / "summary.toml").write_text(CLAIM)
    (tmp_path / "summary.json").write_bytes(msgspec.json.encode(make_summary(tmp_path)))
    return tmp_path


def test_site_reads_a_report_of_the_lab(published: Path) -> None:
    (found,) = list_published()
    report = found.report
    assert report is not None
    assert report.gains["4/4"].gain == 2.0
    assert found.runs()[0].name == "4-4-1.jsonl"


def test_site_reads_a_summary_of_the_lab(published: Path) -> None:
    summary = read_summary()
    assert summary is not None
    (finding,) = summary.answers["sparse"].figures
    assert (finding.experiment, finding.comparison.gain) == ("sparse", 2.0)


def test_reports_in_tests_of_the_site_have_the_shape_of_real_reports(published: Path) -> None:
    real = json.loads((published / "sparse" / "report.json").read_bytes())
    made = lab_reports.make_report()
    assert made.keys() == real.keys()
    assert made["comparisons"][0].keys() == real["comparisons"][0].keys()
    assert made["onsets"][0].keys() == real["onsets"][0].keys()
    assert made["arms"][0].keys() <= real["arms"][0].keys()
    assert made["arms"][0]["curves"].keys() == real["arms"][0]["curves"].keys()
