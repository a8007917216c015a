"""The read API tells what the lab's pages show."""

import json
from pathlib import Path

import pytest
from django.test import Client

from tests.dashboard.lab_reports import publish_sharing, write_report

pytestmark = pytest.mark.django_db
LAB = "/api/v1/lab"


def test_the_answer_comes_with_the_summary_and_the_reports(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    told = client.get(LAB).json()
    assert told["verdict"] == "helps"
    assert told["summary"] == json.loads((lab / "summary.json").read_text())
    (item,) = told["items"]
    assert (item["name"], item["shipped"], item["baseline"]) == ("sharing", False, "8/0")
    assert item["arms"] == ["8/0", "4/4", "4/4 sender"]


def test_before_the_first_report_the_list_is_empty(lab: Path, client: Client) -> None:
    assert client.get(LAB).json() == {"verdict": "unmeasured", "summary": None, "items": []}


def test_a_report_is_given_as_the_lab_wrote_it(lab: Path, client: Client) -> None:
    folder = write_report(lab / "sharing", new_field=1)
    answer = client.get(f"{LAB}/sharing")
    assert answer.content == (folder / "report.json").read_bytes()
    etag = answer.headers["ETag"]
    assert client.get(f"{LAB}/sharing", headers={"If-None-Match": etag}).status_code == 304


def test_a_report_that_is_not_there_is_refused(lab: Path, client: Client) -> None:
    answer = client.get(f"{LAB}/sharing")
    assert (answer.status_code, answer.json()["code"]) == (404, "lab.unknown")


def test_a_damaged_report_is_refused_and_left_out_of_the_list(lab: Path, client: Client) -> None:
    (write_report(lab / "sharing") / "report.json").write_text("{")
    answer = client.get(f"{LAB}/sharing")
    assert (answer.status_code, answer.json()["code"]) == (500, "lab.unreadable")
    assert client.get(LAB).json()["items"] == []
