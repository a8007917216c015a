"""The pages of the lab: an overview of its findings, and one report."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.lab import (
    OUTCOMES,
    list_arms,
    load_published,
    read_answer,
    read_questions,
    read_report,
)
from swarm_web.dashboard.reports.lab_drawings import (
    chart_cost,
    chart_mechanism,
    choose_onset,
    draw_chart,
    draw_curve,
    draw_difference,
    draw_report,
)
from swarm_web.lab.shelf import list_published


@require_safe
def lab(request: HttpRequest) -> HttpResponseBase:
    """Show whether sharing helps, the findings on each question of the lab, and its reports."""
    answer, questions = read_answer(), read_questions()
    main = answer.report
    context = {
        "answer": answer,
        "questions": questions,
        "recipe": next(question for question in questions if question.key == "recipe"),
        "published": list_published(),
        "main": main,
        "rows": list_arms(main) if main else [],
        "drawing": draw_curve(main, "cumulative") if main else None,
    }
    return render(request, "lab.html", context)


@require_safe
@answer_refusals
def lab_report(request: HttpRequest, name: str) -> HttpResponseBase:
    """Show one report: its question, its results, and how to verify them."""
    published = load_published(name)
    report = read_report(published)
    onset = choose_onset(report, request.GET.get("arm"))
    context = {
        "published": published,
        "report": report,
        "rows": list_arms(report),
        "curves": draw_report(report),
        "onset": onset,
        "difference": draw_difference(report, onset) if onset else None,
        "mechanism": chart_mechanism(report),
        "cost": chart_cost(report),
        "comparisons": [(each, OUTCOMES[each.outcome]) for each in report.comparisons],
        "runs": published.runs(),
    }
    return render(request, "lab_report.html", context)


@require_safe
@answer_refusals
def lab_figure(request: HttpRequest, name: str) -> HttpResponseBase:
    """Return a report's figure as JSON; `?chart=` names the figure, by default `cumulative`."""
    report = read_report(load_published(name))
    chart = request.GET.get("chart", "cumulative")
    return JsonResponse(draw_chart(report, chart, arm=request.GET.get("arm")).figure)
