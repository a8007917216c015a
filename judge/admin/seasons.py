"""Admin of seasons: drafted, started, paused and ended. A start freezes the fields in FROZEN."""

from typing import Any

import msgspec
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.template.defaultfilters import linebreaksbr
from django.utils import timezone
from django.utils.html import format_html, format_html_join

from judge.forms import SeasonForm
from judge.models import Season
from judge.prompts import ANSWER_FORMATS
from judge.selectors.seasons import task_choices
from judge.services.scheduling import LEAD_TIME, schedule_round
from judge.services.seasons import (
    announce_rules,
    end_season,
    pause_season,
    resume_season,
    start_season,
)
from judge.services.standings import rebuild_standings, refresh_standings
from judge.task_mix import check_lasting, describe_lasting, draw_sample, season_lasting
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import SeasonInfo
from swarm_tasks.quiz import share_questions
from swarm_tasks.starter import YEAR_TASKS
from swarm_web.core.verifiers import process_verifier

# Fields that scores depend on, and the name, which nodes and the chain know the season by; they
# cannot change once the season has started.
FROZEN = [
    "name",
    "tasks",
    "questions_per_round",
    "max_new_tokens",
    "temperature",
    "system_prompt",
    "public_beacon",
    "completions",
    "assignment",
    "isolated_share",
    "isolated_publish",
    "trial_rounds",
]


@admin.register(Season)
class SeasonAdmin(admin.ModelAdmin[Season]):
    """Admin of seasons, with sample questions and with actions to start, pause or end a season."""

    form = SeasonForm
    list_display = ["name", "state", "paused", "started_at", "questions_per_round", "assignment"]
    list_filter = ["state", "paused"]
    search_fields = ["name"]
    readonly_fields = [
        "state",
        "paused",
        "asked",
        "lasts",
        "halt_reason",
        "as_read",
        "answer_formats",
        "seed",
        "generator",
        "answer_rules",
        "started_at",
        "ended_at",
    ]
    fieldsets = [
        (None, {"fields": ["name"]}),
        (
            "Questions",
            {
                "description": "Fixed once the season has started.",
                "fields": [
                    "tasks",
                    "questions_per_round",
                    "asked",
                    "lasts",
                    "max_new_tokens",
                    "temperature",
                    "system_prompt",
                    "answer_formats",
                    "as_read",
                    "public_beacon",
                ],
            },
        ),
        (
            "Training",
            {
                "description": "Completions, assignment, isolated share, whether isolated nodes "
                "publish, and the rounds of the trial are fixed once the season has started.",
                "fields": [
                    *("completions", "local", "external", "batch"),
                    *("assignment", "isolated_share", "isolated_publish", "trial_rounds"),
                    "sampling",
                ],
            },
        ),
        (
            "Schedule",
            {
                "fields": [
                    "cadence_seconds",
                    "planned_rounds",
                    "open_seconds",
                    "scoring_seconds",
                    "early_advance",
                    "late_joiners",
                ]
            },
        ),
        (
            "Scores",
            {"fields": ["recent_rounds", "minimum_questions", "minimum_attendance"]},
        ),
        ("Admission", {"fields": ["minimum_client", "next_minimum_client"]}),
        (
            "Status",
            {
                "fields": [
                    ("state", "paused"),
                    "halt_reason",
                    ("started_at", "ended_at"),
                    ("seed", "generator", "answer_rules"),
                ]
            },
        ),
    ]
    actions = ["start", "pause", "resume", "end", "add_round"]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Prefill a new season with a task mix that has enough questions for a year."""
        tasks = msgspec.to_builtins(list(YEAR_TASKS))
        return {"tasks": tasks, **super().get_changeform_initial_data(request)}

    def get_readonly_fields(self, request: HttpRequest, obj: Season | None = None) -> list[str]:
        """Return the read-only fields, including those in FROZEN if the season has started."""
        frozen = FROZEN if obj is not None and obj.state != Season.State.DRAFT else []
        return [*self.readonly_fields, *frozen]

    def has_delete_permission(self, request: HttpRequest, obj: Season | None = None) -> bool:
        """Forbid deleting a season that has started, because its results must be kept."""
        deletable = obj is None or obj.state == Season.State.DRAFT
        return deletable and super().has_delete_permission(request, obj)

    @admin.display(description="Questions of each dataset")
    def asked(self, obj: Season) -> str:
        """Show how many questions of each dataset a round asks."""
        if not obj.pk:
            return "shown once the season is saved"
        return ", ".join(f"{dataset} {count}" for dataset, count in _share(obj).items())

    @admin.display(description="Number of rounds that the questions last")
    def lasts(self, obj: Season) -> str:
        """Show for how many rounds each dataset has questions, and how many rounds exist so far."""
        if not obj.pk:
            return "shown once the season is saved"
        try:
            lasting = season_lasting(obj)
        except RefusedError as refusal:
            return f"not measured: {refusal.message}"
        datasets = ", ".join(f"{each.dataset} {describe_lasting(each)}" for each in lasting)
        return f"{datasets}; {obj.rounds.count():,} rounds have been made."

    @admin.display(description="Example prompts")
    def answer_formats(self, obj: Season) -> str:
        """Show example system prompts, one for each format of answers, to copy from."""
        rows = format_html_join("", "<dt>{}</dt><dd>{}</dd>", ANSWER_FORMATS.items())
        return format_html("<dl>{}</dl>", rows)

    @admin.display(description="As a node's model sees it")
    def as_read(self, obj: Season) -> str:
        """Show the system prompt and a sample question of the season's first dataset."""
        if not obj.pk:
            return "shown once the season is saved"
        try:
            sample = draw_sample(task_choices(obj.tasks)[0], verifier=process_verifier())
        except RefusedError as refusal:
            return f"no sample: {refusal.message}"
        return format_html(
            "<dl><dt>system</dt><dd>{}</dd><dt>user</dt><dd>{}</dd></dl>",
            linebreaksbr(obj.system_prompt),
            linebreaksbr(sample.question),
        )

    def save_model(
        self, request: HttpRequest, obj: Season, form: ModelForm[Season], change: bool
    ) -> None:
        """Save a new season, or only the edited fields of a stored one.

        The other fields are not saved, because the judge may have changed them meanwhile.

        For a draft, sample questions are then shown. For a started season, the standings are
        updated if they depend on an edited field. If the season is running and an edited field is
        one of the rules that nodes receive, the rules are sent to the nodes.
        """
        obj.save(update_fields=form.changed_data if change else None)
        if obj.state == Season.State.DRAFT:
            self._show_samples(request, obj, form)
            messages.info(request, "To start the season, select it in the list and choose “Start”.")
            return
        if not set(SeasonInfo.__struct_fields__).isdisjoint(form.changed_data):
            announce_rules(obj)
        if "recent_rounds" in form.changed_data:
            refresh_standings(obj, now=timezone.now())
        if {"minimum_questions", "minimum_attendance"} & set(form.changed_data):
            rebuild_standings(obj)

    def _show_samples(self, request: HttpRequest, season: Season, form: ModelForm[Season]) -> None:
        """Show the sample of each dataset that the form's validation generated."""
        counts = _share(season)
        lasting = {each.dataset: each for each in getattr(form, "lasting", ())}
        for sample in getattr(form, "samples", ()):
            dataset = sample.spec.dataset
            messages.info(
                request,
                format_html(
                    "Sample of {}, {} of {} questions in a round: <q>{}</q>. Its questions last "
                    "for {}.",
                    dataset,
                    counts[dataset],
                    season.questions_per_round,
                    sample.question,
                    describe_lasting(lasting[dataset]),
                ),
            )

    # ---- actions

    @admin.action(description="Start (ends the running season)", permissions=["change"])
    def start(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Start the selected draft and end the running season; show the outcome.

        Nothing is started if several seasons are selected, if the selected one is not a draft, or
        if `check_lasting` finds too few questions in a dataset or refuses a dataset.
        """
        if len(queryset) > 1:
            messages.error(request, "Only one season can run at a time: select the one to start.")
            return
        for season in queryset:
            drafted = season.state == Season.State.DRAFT
            if drafted and (problems := _find_problems(season)):
                messages.error(request, f"{season} was not started. {problems}")
                continue
            changed = drafted and start_season(season, now=timezone.now())
            self._report(request, season, "started", changed=changed)

    @admin.action(description="Pause: open no new rounds", permissions=["change"])
    def pause(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Pause each selected season, and show for each whether it was paused."""
        for season in queryset:
            self._report(request, season, "paused", changed=pause_season(season))

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Resume each selected season, and show for each whether it was resumed."""
        for season in queryset:
            self._report(request, season, "resumed", changed=resume_season(season))

    @admin.action(description="End", permissions=["change"])
    def end(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """End each selected season, and show for each whether it was ended."""
        for season in queryset:
            self._report(request, season, "ended", changed=end_season(season, now=timezone.now()))

    @admin.action(description="Add a round that opens at once", permissions=["change"])
    def add_round(self, request: HttpRequest, queryset: QuerySet[Season]) -> None:
        """Schedule a round that opens as soon as possible in each selected, running season."""
        now = timezone.now()
        for season in queryset:
            if season.state != Season.State.RUNNING:
                self._report(request, season, "", changed=False)
                continue
            try:
                judge_round = schedule_round(
                    season, opens_at=now + LEAD_TIME, now=now, verifier=process_verifier()
                )
            except RefusedError as refusal:
                messages.error(request, f"{season}: {refusal.message}. {refusal.fix}")
            else:
                self._report(request, season, f"{judge_round} opens in a moment", changed=True)

    def _report(self, request: HttpRequest, season: Season, what: str, *, changed: bool) -> None:
        """Show the outcome of an action; a change is also recorded in the season's history."""
        if changed:
            self.log_change(request, season, f"{what[:1].upper()}{what[1:]}.")
            messages.success(request, f"{season}: {what}.")
        else:
            runs_paused = season.paused and season.state == Season.State.RUNNING
            state = "paused" if runs_paused else season.get_state_display().lower()
            messages.warning(request, f"{season}: nothing changed, it is {state}.")


def _share(season: Season) -> dict[str, int]:
    """Return how many questions of each dataset a round of the season asks."""
    choices = task_choices(season.tasks)
    counts = share_questions(choices, season.questions_per_round)
    return {choice.dataset: count for choice, count in zip(choices, counts, strict=True)}


def _find_problems(season: Season) -> str:
    """Return what `check_lasting` objects to in a season's datasets, or an empty string."""
    choices, questions = task_choices(season.tasks), season.questions_per_round
    try:
        check_lasting(choices, questions, rounds=season.rounds_to_ask)
    except ValidationError as problem:
        return " ".join(problem.messages)
    return ""
