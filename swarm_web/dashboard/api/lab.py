"""The read API's /lab: the lab's answers, its reports, and one report as the lab wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BeforeValidator, Field

from swarm_web.core.errors import RequestError
from swarm_web.dashboard.api.fields import ReportSchema, at, read_under
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

Name = Annotated[str, Field(description="As in its address.", examples=["sharing"])]
Phase = Annotated[
    str,
    Field(description="`confirmatory`, or `exploratory`: not evidence.", examples=["confirmatory"]),
]
Question = Annotated[str, Field(description="What was asked.", examples=["Does sharing help?"])]
Headline = Annotated[str, Field(description="What the numbers say, in English.")]
Baseline = Annotated[
    str, Field(description="The arm that others are compared with.", examples=["8/0"])
]
Rounds = Annotated[int, Field(description="Training rounds of a run.", examples=[300])]
Seeds = Annotated[
    list[int], Field(description="Seeds that every arm was run with.", examples=[[11, 12, 13]])
]


def _name_arms(arms: Sequence[LabArm]) -> list[str]:
    return [arm.name for arm in arms]


class LabItem(ReportSchema):
    """One published report."""

    model_config = read_under(report="question phase headline baseline arms rounds seeds".split())

    name: Name
    question: Question
    phase: Phase
    shipped: bool = at(
        "ours",
        description="Made by this project; false: by the site's operator.",
        examples=[True],
    )
    headline: Headline
    baseline: Baseline
    arms: Annotated[list[str], BeforeValidator(_name_arms)] = Field(
        description="Names of all arms.", examples=[["8/0", "4/4"]]
    )
    rounds: Rounds
    seeds: Seeds


class LabOut(ReportSchema):
    """What the lab answers, and the reports that it answers from."""

    verdict: str = Field(
        description="`helps`, `hurts`, `unclear`, `explored` (not evidence) or `unmeasured`.",
        examples=["helps"],
    )
    summary: dict[str, Any] | None = Field(
        description="Each question's findings and a sentence: `summary.json` as it stands."
    )
    items: list[LabItem]


class LabReport(ReportSchema):
    """A `report.json` as it stands; docs/lab.md says how its numbers are computed."""

    format: int = Field(description="The version of the file format.", examples=[1])
    name: str = Field(description="The experiment's name.", examples=["sharing"])
    question: Question
    phase: Phase
    design: str = Field(description="The fingerprint of the experiment without its arms.")
    settings: str = Field(description="The experiment's TOML file.")
    baseline: Baseline
    rounds: Rounds
    seeds: Seeds
    headline: Headline
    notes: list[str] = Field(description="What to know before believing a figure.")
    arms: list[dict[str, Any]] = Field(description="Outcomes, costs and curves of each arm.")
    comparisons: list[dict[str, Any]] = Field(description="Arms against the baseline.")
    onsets: list[dict[str, Any]] = Field(description="Differences over rounds.")
    paper: list[dict[str, Any]] = Field(description="The paper's own figures.")
    differences: list[str] = Field(description="How the set-up differs from the paper's.")
    commands: list[str] = Field(description="Commands that reproduce the report.")
    runs: list[dict[str, Any]] = Field(description="The runs and the hashes of their lines.")


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
    """The lab's verdict and summary (None without one), and the reports that can be read."""

    verdict: str
    summary: dict[str, Any] | None
    items: list[ReportFolder]


@read(router, "/lab", LabOut)
def get_lab(request: HttpRequest) -> LabIndex:
    """Return whether sharing helps according to the lab, and the list of its reports."""
    summary = read_summary()
    return LabIndex(
        verdict=read_answer().verdict,
        summary=summary.content if summary else None,
        items=[published for published in list_published() if published.report is not None],
    )


@read(router, "/lab/{name}", LabReport)
def get_lab_report(request: HttpRequest, name: ReportPath) -> HttpResponse:
    """Return a report with every number of its page."""
    published = find_published(name)
    if published is None:
        raise RequestError(
            "lab.unknown", "There is no report of that name.", fix="See /api/v1/lab.", status=404
        )
    read_report(published)
    path = published.folder / "report.json"
    answer = HttpResponse(read_bytes(path), content_type="application/json; charset=utf-8")
    return name_answer(request, answer, etag=version_of([path]) or "")
