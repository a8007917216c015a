"""Test which lab reports are published, how they are read and cached."""

import json
import logging
from pathlib import Path

import pytest
from pytest_django import Settings

from swarm_web.lab import shelf
from swarm_web.lab.shelf import Unreadable, find_published, list_published, read_summary
from tests.dashboard.lab_reports import make_answer, make_finding, write_report, write_summary


@pytest.fixture
def lab(settings: Settings, tmp_path: Path) -> Path:
    settings.LAB_REPORTS = [tmp_path]
    return tmp_path


def replace(report: Path, old: str, new: str) -> None:
    text = report.read_text()
    assert old in text
    report.write_text(text.replace(old, new))


def read_reason(name: str) -> str:
    """Return the reason why a published report cannot be read."""
    published = find_published(name)
    assert published is not None
    found = published.read()
    assert isinstance(found, Unreadable)
    return found.reason


def test_each_folder_with_a_report_is_published_under_its_name(lab: Path) -> None:
    write_report(lab / "sharing")
    write_report(lab / "map")
    (lab / "experiments").mkdir()
    assert [each.name for each in list_published()] == ["map", "sharing"]


def test_folder_whose_name_is_not_valid_in_a_url_is_not_published(lab: Path) -> None:
    write_report(lab / ".hidden")
    write_report(lab / "with space")
    assert list_published() == []


@pytest.mark.parametrize("name", ["..", "../sharing", "sharing/runs", ""])
def test_only_listed_names_can_be_found(lab: Path, name: str) -> None:
    write_report(lab / "sharing")
    assert find_published(name) is None


def test_first_folder_takes_precedence_and_only_shipped_reports_are_marked_ours(
    settings: Settings, tmp_path: Path
) -> None:
    shipped, own = tmp_path / "shipped", tmp_path / "own"
    settings.LAB_SHIPPED, settings.LAB_REPORTS = shipped, [own, shipped]
    write_report(own / "sharing", question="Ours?")
    write_report(shipped / "sharing")
    write_report(shipped / "map")
    assert [(each.name, each.ours) for each in list_published()] == [
        ("map", True),
        ("sharing", False),
    ]


def test_missing_folder_publishes_nothing(settings: Settings, tmp_path: Path) -> None:
    settings.LAB_REPORTS = [tmp_path / "nowhere"]
    assert list_published() == []
    assert read_summary() is None


def test_report_is_read_again_only_after_it_changed(lab: Path) -> None:
    report = write_report(lab / "sharing") / "report.json"
    (published,) = list_published()
    first = published.report
    assert first is not None
    assert published.report is first
    replace(report, "Does sharing help?", "Does it?")
    again = published.report
    assert again is not None
    assert again.question == "Does it?"


def test_unknown_fields_of_a_report_are_ignored(lab: Path) -> None:
    write_report(lab / "sharing", new_field={"deep": [1]})
    (published,) = list_published()
    assert published.report is not None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"format": 1', '"format": 2', "$.format"),
        ('"baseline": "8/0"', '"baseline": "6/2"', "its baseline"),
        ('"rounds": [1, 2, ', '"rounds": [', "as many values as rounds"),
        ('"rounds": [1, 2, ', '"rounds": [2, 1, ', "rounds are in order"),
        ('"rounds": [1, 2, ', '"rounds": [0, 2, ', "from round 1 on"),
        ('"name": "4/4"', '"name": "8/0"', "a name of its own"),
        ('"p": 0.03125', '"p": 7', "`float` <= 1.0"),
        ('"headline": ', '"headlines": ', "missing required field `headline`"),
        ("}", "", "JSON is malformed"),
    ],
)
def test_reason_names_the_invalid_part_of_a_report(
    lab: Path, old: str, new: str, reason: str
) -> None:
    replace(write_report(lab / "sharing") / "report.json", old, new)
    assert reason in read_reason("sharing")


def test_report_above_the_size_limit_is_not_read(lab: Path) -> None:
    report = write_report(lab / "sharing") / "report.json"
    report.write_bytes(report.read_bytes() + b" " * shelf.MAX_BYTES)
    assert read_reason("sharing") == "it is larger than 8 MiB"


def test_report_nested_too_deeply_is_not_read(lab: Path) -> None:
    report = write_report(lab / "sharing") / "report.json"
    replace(report, '"notes": [', f'"deep": {"[" * 100_000}{"]" * 100_000}, "notes": [')
    assert read_reason("sharing") == "it is nested too deeply"


def test_invalid_report_is_logged_once(lab: Path, caplog: pytest.LogCaptureFixture) -> None:
    (write_report(lab / "sharing") / "report.json").write_text("{}")
    for _ in range(3):
        read_reason("sharing")
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "swarm-node lab report" in record.getMessage()


def test_runs_are_only_the_record_files_of_the_lab(lab: Path) -> None:
    folder = write_report(lab / "sharing")
    (folder / "runs" / "8-0-1.lock").touch()
    (folder / "runs" / "notes.txt").touch()
    (published,) = list_published()
    assert [path.name for path in published.runs()] == ["4-4-1.jsonl.gz", "8-0-1.jsonl.gz"]


def test_symbolic_links_are_not_published(
    lab: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    secret = elsewhere / "secret"
    secret.write_text("SECRET_KEY=1")
    folder = write_report(lab / "sharing")
    (folder / "experiment.toml").unlink()
    (folder / "experiment.toml").symlink_to(secret)
    (folder / "runs" / "8-0-1.jsonl.gz").unlink()
    (folder / "runs" / "8-0-1.jsonl.gz").symlink_to(secret)
    (lab / "linked").mkdir()
    (lab / "linked" / "report.json").symlink_to(folder / "report.json")
    (lab / "linked-folder").symlink_to(write_report(elsewhere / "linked"))
    (published,) = list_published()
    assert published.file("experiment.toml") is None
    assert [path.name for path in published.runs()] == ["4-4-1.jsonl.gz"]


def test_summary_that_is_a_symbolic_link_is_not_published(
    lab: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    write_summary(elsewhere, sparse=make_answer(make_finding(gain=1.94)))
    (lab / "summary.json").symlink_to(elsewhere / "summary.json")
    assert read_summary() is None


def test_summary_is_read_with_its_findings(lab: Path) -> None:
    write_summary(lab, sparse=make_answer(make_finding(gain=1.94)))
    summary = read_summary()
    assert summary is not None
    (finding,) = summary.answers["sparse"].figures
    assert finding.comparison.gain == 1.94
    assert summary.content == json.loads((lab / "summary.json").read_text())


def test_invalid_summary_is_treated_as_missing(lab: Path) -> None:
    (lab / "summary.json").write_text('{"sparse": {"figures": "many"}}')
    assert read_summary() is None
