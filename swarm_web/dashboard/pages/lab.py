"""The lab: what it answers, and one report."""

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from swarm_web.dashboard.reports.lab import (
    OUTCOMES,
    read_answer,
    read_questions,
    read_report,
    tell_arms,
)
from swarm_web.dashboard.reports.lab_drawings import (
    choose_onset,
    draw_chart,
    draw_cumulative,
    draw_difference,
    draw_report,
    tell_cost,
    tell_mechanism,
)
from swarm_web.errors import answer_refusals
from swarm_web.lab.shelf import ReportFolder, find_published, list_published, read_summary


@require_safe
def lab(request: HttpRequest) -> HttpResponseBase:
    """Answer whether sharing helps, then every other question, and list the reports."""
    published, answer = list_published(), read_answer()
    source = answer.source
    main = source.report if source else None
    questions = read_questions(read_summary(), published)
    context = {
        "answer": answer,
        "questions": questions,
        "recipe": next(question for question in questions if question.key == "recipe"),
        "published": published,
        "main": main,
        "rows": tell_arms(main) if main else [],
        "drawing": draw_cumulative(main) if main else None,
    }
    return render(request, "lab.html", context)


@require_safe
@answer_refusals
def lab_report(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show one report: what was asked, what came of it, and how to check it."""
    published = _find(name)
    report = read_report(published)
    onset = choose_onset(report, request.GET.get("arm"))
    context = {
        "published": published,
        "report": report,
        "rows": tell_arms(report),
        "curves": draw_report(report),
        "onset": onset,
        "difference": draw_difference(report, onset) if onset else None,
        "mechanism": tell_mechanism(report),
        "cost": tell_cost(report),
        "comparisons": [(each, OUTCOMES[each.outcome]) for each in report.comparisons],
        "runs": published.runs(),
    }
    return render(request, "lab_report.html", context)


@require_safe
@answer_refusals
def lab_figure(request: HttpRequest, name: str) -> HttpResponseBase:
    """Answer with one of a report's figures, for the chart to draw itself."""
    report = read_report(_find(name))
    chart = request.GET.get("chart", "cumulative")
    return JsonResponse(draw_chart(report, chart, arm=request.GET.get("arm")).figure)


def _find(name: str) -> ReportFolder:
    published = find_published(name)
    if published is None:
        raise Http404
    return published
