"""Seasons and rounds in the operator's admin."""

from datetime import timedelta
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from judge.forms import SeasonForm
from judge.models import Question, Round, Score, Season
from judge.services.oversight import void_round
from judge.services.scheduling import LEAD, schedule_round
from judge.services.seasons import end_season, pause_season, resume_season, start_season
from judge.verifiers import process_verifier
from swarm_protocol.errors import RefusedError

# Rules that nodes train and are judged by: fixed once the season has started.
RULES = [
    "tasks",
    "completions",
    "questions_per_round",
    "max_new_tokens",
    "temperature",
]


# What is asked for a new round, and what is shown of one that was made.
ASKED = ["season", "opens_at"]
MADE = ["number", "season", "phase", "opens_at", "closes_at", "closed_at", "scores_shown"]


@admin.register(Season)
class SeasonAdmin(admin.ModelAdmin[Season]):
    """Draft a season, see a sample of each task, start it, pause it, add a round by hand."""

    form = SeasonForm
    list_display = ["name", "state", "paused", "started_at", "questions_per_round"]
    list_filter = ["state", "paused"]
    search_fields = ["name"]
    readonly_fields = ["state", "paused", "seed", "generator", "started_at", "ended_at"]
    actions = ["start", "pause", "resume", "end", "add_round"]

    def get_readonly_fields(self, request: HttpRequest, obj: Season | None = None) -> list[str]:
        """Freeze the rules of a season that has started."""
        frozen = RULES if obj is not None and obj.state != Season.State.DRAFT else []
        return [*self.readonly_fields, *frozen]

    def save_model(
        self, request: HttpRequest, obj: Season, form: ModelForm[Season], change: bool
    ) -> None:
        """Save, and show the sample that validation generated for each dataset."""
        super().save_model(request, obj, form, change)
        for sample in getattr(form, "samples", ()):
            messages.info(
                request,
                format_html("Sample of {}: <q>{}</q>", sample.spec.dataset, sample.question),
            )

    @admin.action(description="Start (ends the season that runs)")
    def start(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Start one drafted season."""
        for season in queryset[:1]:
            self._tell(request, season, "started", won=start_season(season, now=timezone.now()))

    @admin.action(description="Pause: open no new rounds")
    def pause(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Pause the chosen seasons."""
        for season in queryset:
            self._tell(request, season, "paused", won=pause_season(season))

    @admin.action(description="Resume")
    def resume(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Resume the chosen seasons."""
        for season in queryset:
            self._tell(request, season, "resumed", won=resume_season(season))

    @admin.action(description="End")
    def end(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """End the chosen seasons."""
        for season in queryset:
            self._tell(request, season, "ended", won=end_season(season, now=timezone.now()))

    @admin.action(description="Add a round that opens at once")
    def add_round(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Schedule a round by hand."""
        now = timezone.now()
        for season in queryset.filter(state=Season.State.RUNNING):
            try:
                made = schedule_round(
                    season, opens_at=now + LEAD, now=now, verifier=process_verifier()
                )
            except RefusedError as refusal:
                messages.error(request, f"{season}: {refusal.message} {refusal.fix}")
            else:
                self._tell(request, season, f"round {made.number} opens in a moment", won=True)

    def _tell(self, request: HttpRequest, season: Season, what: str, *, won: bool) -> None:
        if won:
            self.message_user(request, f"{season}: {what}.")
        else:
            self.message_user(
                request, f"{season}: nothing changed, it is {season.state}.", messages.WARNING
            )


class QuestionInline(admin.TabularInline[Question, Round]):
    """A round's sealed questions; whoever may see this page sees their specs."""

    model = Question
    fields = ["position", "dataset", "prompt", "spec"]
    readonly_fields = ["position", "dataset", "prompt", "spec"]
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Round | None = None) -> bool:
        """Questions are drawn, never typed."""
        return False


@admin.register(Round)
class RoundAdmin(admin.ModelAdmin[Round]):
    """See rounds, schedule one for a given time, void one."""

    list_display = ["number", "season", "phase", "opens_at", "closes_at", "closed_at"]
    list_filter = ["phase", "season"]
    actions = ["void"]
    inlines = [QuestionInline]

    def get_readonly_fields(self, request: HttpRequest, obj: Round | None = None) -> list[str]:
        """Nothing of a round can be edited once it is made."""
        return [] if obj is None else MADE

    def get_fields(self, request: HttpRequest, obj: Round | None = None) -> Any:
        """Ask for season and time of a new round; show what there is to see of a made one."""
        return ASKED if obj is None else MADE

    def save_model(
        self, request: HttpRequest, obj: Round, form: ModelForm[Round], change: bool
    ) -> None:
        """Make the round through the service, which draws and seals its questions."""
        now = timezone.now()
        made = schedule_round(
            obj.season,
            opens_at=max(obj.opens_at, now + timedelta(seconds=1)),
            now=now,
            verifier=process_verifier(),
        )
        obj.pk, obj.number = made.pk, made.number

    @admin.action(description="Void: take out of every score")
    def void(self, request: HttpRequest, queryset: QuerySet[Round]) -> None:
        """Void the chosen rounds."""
        for judge_round in queryset:
            if void_round(judge_round, reason="voided by the operator", now=timezone.now()):
                self.message_user(request, f"{judge_round} is void; the leaderboard follows.")

    @admin.display(description="scores")
    def scores_shown(self, obj: Round) -> SafeString:
        """List the round's scores."""
        scores: QuerySet[Score] = obj.scores.select_related("node")
        return format_html_join(
            "", "<div>{}: {} of {}</div>", ((s.node.name, s.correct, s.n) for s in scores)
        )
