"""What the lab answers, and its reports."""

from typing import Annotated, Any

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.reading import name_answer, read
from swarm_web.dashboard.api.schemas.lab import LabOut, LabReport
from swarm_web.dashboard.reports.lab import read_answer, read_report
from swarm_web.errors import RequestError
from swarm_web.lab.shape import PublishedReport
from swarm_web.lab.shelf import (
    ReportFolder,
    find_published,
    list_published,
    read_bytes,
    read_summary,
    version_of,
)

router = Router(tags=["lab"])

ReportPath = Annotated[
    str,
    Field(
        max_length=64,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$",
        description="The report's name.",
        json_schema_extra={"example": "sharing"},
    ),
]


@read(router, "/lab", LabOut)
def get_lab(request: HttpRequest) -> dict[str, Any]:
    """Tell whether sharing helps, as the lab found it, and list the reports."""
    summary = read_summary()
    return {
        "verdict": read_answer().verdict,
        "summary": summary.raw if summary else None,
        "items": [
            _describe(published, report)
            for published in list_published()
            if (report := published.report) is not None
        ],
    }


@read(router, "/lab/{name}", LabReport)
def get_lab_report(request: HttpRequest, name: ReportPath) -> HttpResponse:
    """Give a report with every number of its page."""
    published = find_published(name)
    if published is None:
        raise RequestError(
            "lab.unknown", "There is no report of that name.", fix="See /api/v1/lab.", status=404
        )
    read_report(published)
    path = published.folder / "report.json"
    answer = HttpResponse(read_bytes(path), content_type="application/json; charset=utf-8")
    return name_answer(request, answer, etag=version_of([path]) or "")


def _describe(published: ReportFolder, report: PublishedReport) -> dict[str, Any]:
    copied = ("question", "phase", "headline", "baseline", "rounds", "seeds")
    return {
        "name": published.name,
        "shipped": published.ours,
        "arms": [arm.name for arm in report.arms],
        **{field: getattr(report, field) for field in copied},
    }
