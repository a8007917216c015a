"""Test that the read API contains the content of the lab's pages."""

import json
from pathlib import Path

import pytest
from django.test import Client

from tests.dashboard.lab_reports import publish_sharing, write_report

pytestmark = pytest.mark.django_db
LAB = "/api/v1/lab"


def test_lab_contains_verdict_summary_and_reports(lab: Path, client: Client) -> None:
    publish_sharing(lab)
    body = client.get(LAB).json()
    assert body["verdict"] == "helps"
    assert body["summary"] == json.loads((lab / "summary.json").read_text())
    (item,) = body["items"]
    assert (item["name"], item["shipped"], item["baseline"]) == ("sharing", False, "8/0")
    assert item["arms"] == ["8/0", "4/4", "4/4 sender"]


def test_lab_without_reports_has_an_empty_list(lab: Path, client: Client) -> None:
    assert client.get(LAB).json() == {"verdict": "unmeasured", "summary": None, "items": []}


def test_report_is_served_unchanged_with_an_etag(lab: Path, client: Client) -> None:
    folder = write_report(lab / "sharing", new_field=1)
    answer = client.get(f"{LAB}/sharing")
    assert answer.content == (folder / "report.json").read_bytes()
    etag = answer.headers["ETag"]
    assert client.get(f"{LAB}/sharing", headers={"If-None-Match": etag}).status_code == 304


def test_unknown_report_returns_404(lab: Path, client: Client) -> None:
    answer = client.get(f"{LAB}/sharing")
    assert (answer.status_code, answer.json()["code"]) == (404, "lab.unknown")


def test_invalid_report_returns_500_and_is_not_listed(lab: Path, client: Client) -> None:
    (write_report(lab / "sharing") / "report.json").write_text("{")
    answer = client.get(f"{LAB}/sharing")
    assert (answer.status_code, answer.json()["code"]) == (500, "lab.unreadable")
    assert client.get(LAB).json()["items"] == []
