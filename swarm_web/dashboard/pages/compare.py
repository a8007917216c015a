"""The page that compares swarm with isolated nodes."""

from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from judge.statistics.comparison import MIN_NODES_PER_ARM, MIN_ROUNDS
from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.compare import CompareReport, read_comparison
from swarm_web.dashboard.reports.duel import choose_model, draw_duel, read_duel
from swarm_web.dashboard.reports.lab import read_answer


@require_safe
@answer_refusals
def compare(request: HttpRequest) -> HttpResponseBase:
    """Show what is known about swarm and isolated nodes, and with what certainty."""
    report = read_comparison()
    model = _choose(request, report)
    context = {
        "report": report,
        "answer": read_answer(),
        "least_nodes": MIN_NODES_PER_ARM,
        "least_rounds": MIN_ROUNDS,
        "models": _models(report),
        "duel": read_duel(report.season, model) if report.season and model is not None else None,
    }
    return render(request, "compare.html", context)


@require_safe
@answer_refusals
def compare_figure(request: HttpRequest) -> HttpResponseBase:
    """Return the figure of a model's arms as JSON; an empty object if nothing is compared."""
    report = read_comparison()
    model = _choose(request, report)
    if report.season is None or model is None:
        return JsonResponse({})
    return JsonResponse(draw_duel(report.season, model).figure)


def _models(report: CompareReport) -> list[str]:
    """Return the models of the season's claims, those with enough data for a test first."""
    return [each.claim.model for each in report.claims]


def _choose(request: HttpRequest, report: CompareReport) -> str | None:
    return choose_model(_models(report), request.GET.get("model"))
