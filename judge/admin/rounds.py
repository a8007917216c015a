"""Admin of rounds, which can be scheduled by hand, voided or recomputed, and of their scores."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.safestring import SafeString
from kombu.exceptions import OperationalError

from judge import tasks
from judge.admin.confirmation import DecisionDetails, ask, decision
from judge.admin.records import RecordAdmin, list_url, show_rows
from judge.forms import RoundForm
from judge.models import Answer, Flag, Question, Round, Ruling, Score
from judge.selectors.rounds import rounds_with_turnout
from judge.selectors.seasons import running_season
from judge.services.oversight import void_round
from judge.services.rounds import count_ungraded
from judge.services.scheduling import LEAD_TIME, schedule_round
from swarm_protocol.errors import RefusedError
from swarm_web.core.verifiers import process_verifier

# ---- decisions


@decision(
    "Void: exclude from every score",
    permission="rule",
    title="Void",
    effects=[
        "These rounds will no longer count: scores, ranks and the comparison of the arms are "
        "updated at once. A round that is open or being scored ends.",
        "Questions, answers and scores stay stored, but a void round can never count again.",
    ],
    done="Voided {}; the leaderboard is updated.",
)
def void(judge_round: Round, details: DecisionDetails) -> str | None:
    """Void a round; return None, or why nothing changed."""
    return None if void_round(judge_round, **details) else "it is already void"


@decision(
    "Recompute: regrade all answers",
    permission="rule",
    title="Recompute",
    effects=[
        "A worker grades all stored answers of these rounds again with the installed verifier, "
        "replaces their scores and updates the leaderboard. Answers that were not graded in time "
        "get their verdict.",
        "If a question cannot be generated again, nothing changes.",
    ],
    done="A worker is grading {} again; the changes will be listed under Rulings.",
)
def recompute(judge_round: Round, details: DecisionDetails) -> str | None:
    """Have a worker grade a round again; return None, or why this is not possible."""
    if judge_round.phase != Round.Phase.CLOSED:
        return f"it is {judge_round.get_phase_display().lower()}; only closed rounds have scores"
    try:
        tasks.recompute.delay(judge_round.pk, details["reason"], details["actor"].pk)
    except OperationalError:
        return "the task queue cannot be reached; try again later"
    return None


# ---- rounds


class QuestionInline(admin.TabularInline[Question, Round]):
    """A round's questions; while they are sealed, only their positions and datasets.

    `manage.py unseal_round` shows sealed questions, and records in the chain that it did.
    """

    model = Question
    readonly_fields = ["answered"]
    extra = 0
    can_delete = False

    def get_fields(self, request: HttpRequest, obj: Round | None = None) -> list[Any]:
        """Return the fields to show: only position and dataset until the round is revealed."""
        revealed = ["prompt", "spec", "answered"] if obj is not None and obj.is_revealed else []
        return ["position", "dataset", *revealed]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Question]:
        """Return the questions by position, with their numbers of answers and of right answers.

        The annotations are named `given` and `right`.
        """
        return (
            super()
            .get_queryset(request)
            .annotate(
                given=Count("answers"), right=Count("answers", filter=Q(answers__solved=True))
            )
            .order_by("position")
        )

    @admin.display(description="answers")
    def answered(self, obj: Question) -> str:
        """Show how many answers there are, and how many of them are right."""
        return f"{getattr(obj, 'given', 0)}, {getattr(obj, 'right', 0)} right"


@admin.register(Round)
class RoundAdmin(RecordAdmin[Round]):
    """Admin of rounds: schedule a round, see its results, void or recompute it."""

    list_display = [
        "number",
        "phase",
        "turnout",
        "commitment_begins",
        "season",
        "opens_at",
        "closed_at",
    ]
    list_filter = ["phase", "season"]
    list_per_page = 50
    search_fields = ["number__exact"]
    fields = [
        ("number", "season", "phase"),
        ("opens_at", "closes_at", "score_by", "closed_at"),
        "void_reason",
        "commitment",
        "turnout",
        "answers",
        "scores",
        "flags",
        "rulings",
    ]
    readonly_fields = ["turnout", "commitment", "answers", "scores", "flags", "rulings"]
    inlines = [QuestionInline]
    actions = [void, recompute]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Round]:
        """Return all rounds, each with the numbers of its seated and scored nodes."""
        return rounds_with_turnout()

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Allow scheduling rounds by hand."""
        return request.user.has_perm("judge.add_round")

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        """Ask when a round should open, and schedule it; errors are shown in the form."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        initial = {"season": running_season(), "opens_at": timezone.now()}
        form = RoundForm(request.POST or None, initial=initial)
        if form.is_valid() and (judge_round := _schedule(form)):
            self.log_addition(request, judge_round, "Scheduled by hand.")
            messages.success(request, f"{judge_round} is scheduled; its questions are sealed.")
            return redirect("admin:judge_round_change", judge_round.pk)
        effects = [
            "The round's questions are drawn and sealed now, or within a minute in a season with a "
            "public beacon; nodes see them when it opens."
        ]
        return ask(self, request, form, title="Schedule a round", effects=effects)

    # ---- columns and fields

    @admin.display(description="turnout")
    def turnout(self, obj: Round) -> str:
        """Show how many nodes have a score, and how many have a seat."""
        return f"{getattr(obj, 'scored', 0)} scored of {getattr(obj, 'seated', 0)} seated"

    @admin.display(description="commitment")
    def commitment_begins(self, obj: Round) -> str:
        """Show the start of the commitment, enough to recognize it."""
        return f"{obj.commitment[:12]}…" if obj.commitment else "-"

    @admin.display(description="answers")
    def answers(self, obj: Round) -> str:
        """Show how many answers are stored, and how many of these have no verdict."""
        stored = Answer.objects.filter(question__round=obj).count()
        return f"{stored} stored, {count_ungraded(obj)} without a verdict"

    @admin.display(description="scores")
    def scores(self, obj: Round) -> SafeString:
        """Show the best scores."""
        best = Score.objects.filter(round=obj).select_related("node", "round")
        url = list_url(Score, round__id__exact=obj.pk)
        best_first = best.order_by(F("score").desc(nulls_last=True), "status", "node__name")
        return show_rows(best_first, _describe_score, url=url)

    @admin.display(description="flags")
    def flags(self, obj: Round) -> SafeString:
        """Show the flags of the round."""
        flags = Flag.objects.filter(round=obj).select_related("node")
        url = list_url(Flag, round__id__exact=obj.pk, state="all")
        return show_rows(flags, lambda flag: f"{flag.node}: {flag.text} [{flag.state}]", url=url)

    @admin.display(description="rulings")
    def rulings(self, obj: Round) -> SafeString:
        """Show the rulings about the round."""
        rulings = Ruling.objects.filter(round=obj).select_related("actor")
        return show_rows(rulings, _describe_ruling, url=list_url(Ruling, round__id__exact=obj.pk))


def _schedule(form: RoundForm) -> Round | None:
    """Schedule and return the round that the form describes.

    If that fails, add an error to the form and return None.
    """
    now = timezone.now()
    try:
        return schedule_round(
            form.cleaned_data["season"],
            opens_at=max(form.cleaned_data["opens_at"], now + LEAD_TIME),
            now=now,
            verifier=process_verifier(),
        )
    except RefusedError as refusal:
        form.add_error(None, f"{refusal.message}. {refusal.fix}")
        return None


def _describe_score(score: Score) -> str:
    if score.score is None:
        return f"{score.node}: {score.get_reason_display()}"
    return f"{score.node}: {score.score:.3f}, {score.correct} of {score.n} solved"


def _describe_ruling(ruling: Ruling) -> str:
    who = ruling.actor or "unknown"
    return f"{ruling.made_at:%Y-%m-%d %H:%M} {who} {ruling.get_action_display()}: {ruling.reason}"


@admin.register(Score)
class ScoreAdmin(RecordAdmin[Score]):
    """Each node's score in each round, with the reason if it is missing or incomplete."""

    list_display = ["node", "round", "model", "arm", "status", "reason", "score", "correct", "n"]
    list_filter = ["status", "reason", "arm", "round__season"]
    list_select_related = ["node", "round"]
    search_fields = ["node__name", "round__number__exact"]
    exclude = ["answered", "solved"]
