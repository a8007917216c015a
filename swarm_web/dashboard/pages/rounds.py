"""The pages of the list of rounds, of one round, and of one question."""

from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from judge.models import Round
from swarm_web.core.errors import answer_refusals
from swarm_web.dashboard.reports.answers import (
    Sheet,
    describe_replay,
    explain_signs,
    read_answers,
    read_filters,
    read_sheet,
)
from swarm_web.dashboard.reports.home import describe_phase
from swarm_web.dashboard.reports.round import (
    QuestionReport,
    load_revealed_round,
    load_round,
    read_round,
)
from swarm_web.dashboard.reports.rounds import (
    RoundsReport,
    read_cursor,
    read_rounds,
    read_season,
)


@require_safe
@answer_refusals
def rounds(request: HttpRequest) -> HttpResponseBase:
    """List rounds, newest first, a page at a time."""
    context = {"report": _read_rounds(request), "query": request.GET.urlencode()}
    return render(request, "rounds.html", context)


@require_safe
@answer_refusals
def rounds_figure(request: HttpRequest) -> HttpResponseBase:
    """Return as JSON the figure above the list of rounds. It shows the scores of these rounds."""
    return JsonResponse(_read_rounds(request).drawing.figure)


def _read_rounds(request: HttpRequest) -> RoundsReport:
    return read_rounds(
        season=read_season(request.GET.get("season")),
        before=read_cursor(request.GET.get("before")),
    )


@require_safe
@answer_refusals
def judge_round(request: HttpRequest, number: int) -> HttpResponseBase:
    """Show a round's phase, and once it has closed also its questions, answers and scores."""
    found = load_round(number)
    report = read_round(found)
    phase, until = describe_phase(found)
    context: dict[str, object] = {
        "report": report,
        "round": found,
        "phase": phase,
        "until": until,
    }
    if found.is_revealed:
        sheet = _read_sheet(request, found, report.questions)
        context |= {
            "sheet": sheet,
            "signs": explain_signs(),
            "quoted": list(zip(report.questions, sheet.quotes, strict=True)),
        }
    return render(request, "round.html", context)


@require_safe
@answer_refusals
def round_replay(request: HttpRequest, number: int) -> HttpResponseBase:
    """Return when the nodes on a round's page answered, as JSON for the page's replay slider."""
    found = _load_revealed(number)
    return JsonResponse(describe_replay(_read_sheet(request, found, read_round(found).questions)))


@require_safe
@answer_refusals
def question(request: HttpRequest, number: int, position: int) -> HttpResponseBase:
    """Show a revealed question and the answers that the query selects, a page at a time."""
    found = _load_revealed(number)
    shown = next((q for q in read_round(found).questions if q.question.position == position), None)
    if shown is None:
        raise Http404(f"Round {number} has no question {position}.")
    filters = read_filters(request.GET.dict())
    context = {
        "round": found,
        "revealed": shown,
        "filters": filters,
        "report": read_answers(found, shown.question, filters),
    }
    return render(request, "question.html", context)


def _load_revealed(number: int) -> Round:
    return load_revealed_round(number, status_at=f"/rounds/{number}/")


def _read_sheet(
    request: HttpRequest, judge_round: Round, questions: Sequence[QuestionReport]
) -> Sheet:
    after = request.GET.get("after", "")
    return read_sheet(judge_round, [each.question for each in questions], after=after)
