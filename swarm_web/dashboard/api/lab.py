"""The read API's /lab: the lab's findings, its reports, and one report as the lab wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BeforeValidator, Field

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.api.fields import ReportSchema, at, describe, read_under
from swarm_web.dashboard.api.reading import name_answer, read
from swarm_web.dashboard.reports.lab import read_answer, read_report
from swarm_web.lab.shape import LabArm
from swarm_web.lab.shelf import (
    ReportFolder,
    find_published,
    list_published,
    read_bytes,
    read_summary,
    version_of,
)

router = Router(tags=["lab"])

Name = Annotated[str, describe("As in its address.", "sharing")]
Phase = Annotated[
    str,
    describe("`confirmatory`, or `exploratory`: not evidence.", "confirmatory"),
]
Question = Annotated[str, describe("What was asked.", "Does sharing help?")]
Headline = Annotated[str, describe("What the numbers say, in English.")]
Baseline = Annotated[str, describe("The arm that others are compared with.", "8/0")]
Rounds = Annotated[int, describe("Training rounds of a run.", 300)]
Seeds = Annotated[list[int], describe("Seeds that every arm was run with.", [11, 12, 13])]


def _name_arms(arms: Sequence[LabArm]) -> list[str]:
    return [arm.name for arm in arms]


class LabItem(ReportSchema):
    """One published report."""

    model_config = read_under(report="question phase headline baseline arms rounds seeds".split())

    name: Name
    question: Question
    phase: Phase
    shipped: bool = at("ours", "Made by this project; false: by the site's operator.", True)
    headline: Headline
    baseline: Baseline
    arms: Annotated[list[str], BeforeValidator(_name_arms)] = describe(
        "Names of all arms.", ["8/0", "4/4"]
    )
    rounds: Rounds
    seeds: Seeds


class LabOut(ReportSchema):
    """The lab's verdict on whether sharing helps, its findings, and its published reports."""

    verdict: str = describe(
        "`helps`, `hurts`, `unclear`, `explored` (not evidence) or `unmeasured`.", "helps"
    )
    summary: dict[str, Any] | None = describe(
        "Each question's findings and a sentence: `summary.json` as it stands."
    )
    items: list[LabItem]


class LabReport(ReportSchema):
    """A `report.json` as the lab wrote it; docs/lab.md says how its numbers are computed."""

    format: int = describe("The version of the file format.", 1)
    name: str = describe("The experiment's name.", "sharing")
    question: Question
    phase: Phase
    design: str = describe("The fingerprint of the experiment without its arms.")
    settings: str = describe("The experiment's TOML file.")
    baseline: Baseline
    rounds: Rounds
    seeds: Seeds
    headline: Headline
    notes: list[str] = describe("What to know before believing a figure.")
    arms: list[dict[str, Any]] = describe("Outcomes, costs and curves of each arm.")
    comparisons: list[dict[str, Any]] = describe("Arms against the baseline.")
    onsets: list[dict[str, Any]] = describe("Differences over rounds.")
    paper: list[dict[str, Any]] = describe("The paper's own figures.")
    differences: list[str] = describe("How the set-up differs from the paper's.")
    commands: list[str] = describe("Commands that reproduce the report.")
    runs: list[dict[str, Any]] = describe("The runs and the hashes of their lines.")


ReportPath = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="The report's name.",
        json_schema_extra={"example": "sharing"},
    ),
]


@dataclass(frozen=True)
class LabIndex:
    """The lab's verdict, its summary, and its reports except unreadable ones.

    `summary` is None if there is none or if it cannot be read.
    """

    verdict: str
    summary: dict[str, Any] | None
    items: list[ReportFolder]


@read(router, "/lab", LabOut)
def get_lab(request: HttpRequest) -> LabIndex:
    """Return the lab's verdict on whether sharing helps, its findings, and its readable reports."""
    summary = read_summary()
    return LabIndex(
        verdict=read_answer().verdict,
        summary=summary.content if summary else None,
        items=[published for published in list_published() if published.report is not None],
    )


@read(router, "/lab/{name}", LabReport)
def get_lab_report(request: HttpRequest, name: ReportPath) -> HttpResponse:
    """Return a report, with every number that the report's page shows."""
    published = find_published(name)
    if published is None:
        raise RequestError(
            "lab.unknown", "There is no report of that name.", fix="See /api/v1/lab.", status=404
        )
    read_report(published)
    path = published.folder / "report.json"
    answer = HttpResponse(read_bytes(path), content_type="application/json; charset=utf-8")
    return name_answer(request, answer, etag=version_of([path]) or "")
