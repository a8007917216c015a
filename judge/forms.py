"""The admin's forms."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django import forms
from django.conf import settings
from django.contrib.admin.widgets import (
    AdminSplitDateTime,
    AdminTextareaWidget,
    AdminTextInputWidget,
)

from judge.models import Ruling, Season
from judge.models.seasons import SAMPLING_WORDS
from judge.selectors.seasons import task_choices
from judge.task_mix import check_lasting, check_tasks
from swarm_protocol.version import parse_version
from swarm_tasks.spaces import DatasetLifetime
from swarm_tasks.verifier import DrawnTask
from swarm_web.core.verifiers import process_verifier

Data = dict[str, Any]


class TaskMixField(forms.JSONField):
    """A form field for a task mix, shown as JSON with one task per line."""

    widget = AdminTextareaWidget(attrs={"rows": 8, "wrap": "off", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        """Return a mix with one task per line, other JSON in one line, and other text as typed."""
        try:
            tasks = [msgspec.json.encode(task) for task in task_choices(value)]
        except msgspec.ValidationError:
            return super().prepare_value(value)
        lines = (msgspec.json.format(task, indent=0).decode() for task in tasks)
        return "[\n  " + ",\n  ".join(lines) + "\n]"


class SamplingField(forms.MultipleChoiceField):
    """The sampling strategies that nodes may request: the selected ones, and always `any`."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, encoder: object = None, decoder: object = None, **options: Any) -> None:
        choices = [(name, words) for name, words in SAMPLING_WORDS.items() if name != "any"]
        # For a callable default, Django would add a hidden field with the initial value.
        fixed = {"choices": choices, "required": False, "show_hidden_initial": False}
        super().__init__(**{**options, **fixed})

    def clean(self, value: Any) -> list[str]:
        """Return `any` and the selected strategies. Raises ValidationError for unknown ones."""
        return ["any", *super().clean(value)]

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the selected strategies differ from `initial`, not counting `any`."""
        return super().has_changed([name for name in initial or () if name != "any"], data)


class SeasonForm(forms.ModelForm[Season]):
    """The admin's form for a season.

    Validation draws a sample question of every task and stores the questions in `samples`. It
    estimates for how many rounds each dataset has questions, and stores the estimates in `lasting`.
    A mix is refused if it is invalid, if a sample cannot be drawn, or if a dataset has too few
    questions for `Season.rounds_to_ask` rounds. Once the season has started, fields that are frozen
    (`judge.admin.seasons.FROZEN`) are not in the form and are not checked.
    """

    samples: tuple[DrawnTask, ...] = ()
    lasting: Sequence[DatasetLifetime] = ()

    class Meta:
        model = Season
        # The admin's fieldsets define them.
        fields: tuple[str, ...] = ()
        field_classes = {"tasks": TaskMixField, "sampling": SamplingField}

    def clean_tasks(self) -> Any:
        """Check the task mix, and store a sample question of each task in `samples`.

        Returns the mix unchanged. Raises ValidationError if it is invalid, if a dataset or its
        configuration is not allowed, or if a sample cannot be drawn.
        """
        tasks = self.cleaned_data["tasks"]
        try:
            choices = task_choices(tasks)
        except msgspec.ValidationError as problem:
            raise forms.ValidationError(
                f"{problem}. Enter a list of objects with dataset, config and weight."
            ) from None
        self.samples = tuple(check_tasks(choices, verifier=process_verifier()))
        return tasks

    def clean_system_prompt(self) -> str:
        """Return the prompt with LF in place of CR LF, which browsers send for each line break."""
        typed: str = self.cleaned_data["system_prompt"]
        return typed.replace("\r\n", "\n")

    def clean(self) -> Data:
        """Check fields that depend on each other, and add an error to each wrong one."""
        data = super().clean() or self.cleaned_data
        self._check_clock(data)
        self._check_questions(data)
        self._check_batch(data)
        self._check_lasting(data)
        self._check_versions(data)
        return data

    def _check_clock(self, data: Data) -> None:
        cadence, open_seconds = data.get("cadence_seconds"), data.get("open_seconds")
        if cadence and open_seconds and cadence <= open_seconds:
            self.add_error(
                "cadence_seconds",
                "A round would still be open when the next one is due: make this longer than "
                "open seconds, or 0 to schedule rounds by hand.",
            )

    def _check_questions(self, data: Data) -> None:
        tasks, questions = data.get("tasks"), data.get("questions_per_round")
        if tasks and questions and questions < len(tasks):
            self.add_error(
                "questions_per_round",
                f"{questions} questions cannot cover {len(tasks)} datasets: ask at least "
                f"{len(tasks)}, one of each, or remove datasets from the mix.",
            )

    def _check_lasting(self, data: Data) -> None:
        # A started season's tasks are frozen, so they are not in the form.
        tasks, questions = data.get("tasks"), data.get("questions_per_round")
        if not tasks or not questions or self.errors:
            return
        planned, cadence = data.get("planned_rounds"), data.get("cadence_seconds") or 0
        rounds = Season(planned_rounds=planned, cadence_seconds=cadence).rounds_to_ask
        try:
            self.lasting = check_lasting(task_choices(tasks), questions, rounds=rounds)
        except forms.ValidationError as problem:
            self.add_error("tasks", problem)

    def _check_batch(self, data: Data) -> None:
        # A form without this field leaves the season's own batch.
        local, batch = data.get("local"), data.get("batch", self.instance.batch)
        if local and batch and local > batch:
            self.add_error(
                "local",
                f"Nodes generate {batch} rollouts in a step, so they cannot train on {local} of "
                "their own: make this at most as large, or generate more.",
            )

    def _check_versions(self, data: Data) -> None:
        minimum = data.get("minimum_client") or settings.MINIMUM_CLIENT_VERSION
        coming = data.get("next_minimum_client") or minimum
        try:
            steps_back = parse_version(coming) < parse_version(minimum)
        except ValueError:
            return  # The model's own validation reports an invalid version.
        if steps_back:
            self.add_error(
                "next_minimum_client",
                f"Clients older than {minimum} are already refused: enter {minimum} or a newer "
                "version, or leave this empty.",
            )


class RoundForm(forms.Form):
    """A round to schedule by hand: its season and opening time."""

    required_css_class = "required"

    season = forms.ModelChoiceField(Season.objects.all())
    opens_at = forms.SplitDateTimeField(
        widget=AdminSplitDateTime,
        help_text="A time in the past means at once. The round waits while another one is open.",
    )

    def clean_season(self) -> Season:
        """Return the season. Raises ValidationError if it is not running."""
        season: Season = self.cleaned_data["season"]
        if season.state != Season.State.RUNNING:
            raise forms.ValidationError(
                f"{season} is {season.get_state_display().lower()}: only the running season can "
                "have rounds. Start it first, or choose the running one."
            )
        return season


class ReasonForm(forms.Form):
    """The operator's reason for a decision; it becomes public."""

    required_css_class = "required"

    reason = forms.CharField(
        max_length=Ruling._meta.get_field("reason").max_length,
        widget=AdminTextInputWidget(attrs={"autofocus": True, "class": "vLargeTextField"}),
        help_text="Shown publicly on the page of the round or node.",
    )
