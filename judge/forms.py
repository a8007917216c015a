"""Validation of what operators type in the admin."""

import math
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
from judge.services.spaces import read_lasting
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_protocol.version import parse_version
from swarm_tasks.allowlist import check_config
from swarm_tasks.keyspace import Part
from swarm_tasks.pool import AnyVerifier
from swarm_tasks.spaces import Lasting
from swarm_tasks.verifier import DrawnTask
from swarm_web.verifiers import process_verifier

MAX_TASKS = 64
SAMPLE_KEY = b"sample shown in the admin"

Data = dict[str, Any]


class TaskMixField(forms.JSONField):
    """A task mix as people write it: a task on each line, with its dataset first."""

    widget = AdminTextareaWidget(attrs={"rows": 8, "wrap": "off", "spellcheck": "false"})

    def prepare_value(self, value: Any) -> Any:
        """Lay a valid mix out; what is not valid stays as it was typed."""
        try:
            tasks = [msgspec.json.encode(task) for task in task_choices(value)]
        except msgspec.ValidationError:
            return super().prepare_value(value)
        lines = (msgspec.json.format(task, indent=0).decode() for task in tasks)
        return "[\n  " + ",\n  ".join(lines) + "\n]"


class SamplingField(forms.MultipleChoiceField):
    """How nodes may ask the pool to draw; `any` is always among it, and no choice."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *, encoder: object = None, decoder: object = None, **options: Any) -> None:
        choices = [(name, words) for name, words in SAMPLING_WORDS.items() if name != "any"]
        # A default that is a function would put what was ticked at first into the form once more.
        fixed = {"choices": choices, "required": False, "show_hidden_initial": False}
        super().__init__(**{**options, **fixed})

    def clean(self, value: Any) -> list[str]:
        """Return what was ticked, after `any`."""
        return ["any", *super().clean(value)]


class SeasonForm(forms.ModelForm[Season]):
    """A season whose every task was generated once, so that a wrong mix never starts.

    Fields that are frozen are not in the form; then what concerns them is not checked again.
    """

    samples: tuple[DrawnTask, ...] = ()
    lasting: Sequence[Lasting] = ()

    class Meta:
        model = Season
        # The admin's fieldsets say which.
        fields: tuple[str, ...] = ()
        field_classes = {"tasks": TaskMixField, "sampling": SamplingField}

    def clean_tasks(self) -> Any:
        """Check the task mix against the allow-list and generate a sample of each task."""
        tasks = self.cleaned_data["tasks"]
        try:
            choices = task_choices(tasks)
        except msgspec.ValidationError as problem:
            raise forms.ValidationError(
                f"{problem}. Give a list of objects with dataset, config and weight."
            ) from None
        self.samples = tuple(check_tasks(choices, verifier=process_verifier()))
        return tasks

    def clean_system_prompt(self) -> str:
        """Take line breaks as nodes read them; browsers send two characters for each."""
        typed: str = self.cleaned_data["system_prompt"]
        return typed.replace("\r\n", "\n")

    def clean(self) -> Data:
        """Check what concerns several fields."""
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
                "open seconds, or 0 to make rounds by hand.",
            )

    def _check_questions(self, data: Data) -> None:
        tasks, questions = data.get("tasks"), data.get("questions_per_round")
        if tasks and questions and questions < len(tasks):
            self.add_error(
                "questions_per_round",
                f"{questions} questions cannot represent {len(tasks)} datasets: ask at least "
                f"{len(tasks)}, one of each, or take datasets out of the mix.",
            )

    def _check_lasting(self, data: Data) -> None:
        # The tasks of a started season cannot be changed, so the form does not have them.
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
        # A started season's batch cannot be changed, so the form does not have it.
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
            return  # The model's own validation says which is no version.
        if steps_back:
            self.add_error(
                "next_minimum_client",
                f"Clients older than {minimum} are refused already: give {minimum} or a newer "
                "version, or leave this empty.",
            )


def check_tasks(tasks: list[TaskChoice], *, verifier: AnyVerifier) -> list[DrawnTask]:
    """Generate one sample of each task. Raises ValidationError naming each that is wrong."""
    problems: list[str] = []
    samples: list[DrawnTask] = []
    if not 1 <= len(tasks) <= MAX_TASKS:
        problems.append(f"A season has 1 to {MAX_TASKS} tasks, not {len(tasks)}.")
    if len({task.dataset for task in tasks}) < len(tasks):
        problems.append("Each dataset may stand in the mix once.")
    for task in tasks[:MAX_TASKS]:
        if not 0 < task.weight <= 1000:
            problems.append(f"{task.dataset}: the weight must be above 0 and at most 1000.")
        try:
            check_config(task.dataset, task.config)
            samples.append(draw_sample(task, verifier=verifier))
        except RefusedError as refusal:
            problems.append(f"{task.dataset}: {refusal.message}")
    if problems:
        raise forms.ValidationError(problems)
    return samples


def check_lasting(tasks: list[TaskChoice], questions: int, *, rounds: int) -> list[Lasting]:
    """Return for how many rounds each dataset lasts.

    Raises ValidationError naming those that have too few questions for `rounds`, as far as their
    samples tell: one that may have enough passes.
    """
    try:
        lasting = read_lasting(tasks, questions)
    except RefusedError as refusal:
        raise forms.ValidationError(refusal.message) from None
    problems = [
        f"{each.dataset} has questions for {describe_lasting(each)}, and {rounds:,} are planned: "
        f"widen its ranges, take fewer questions or more time for a round, or plan fewer rounds."
        for each in lasting
        if each.at_most < rounds
    ]
    if problems:
        raise forms.ValidationError(problems)
    return lasting


def describe_lasting(lasting: Lasting) -> str:
    """Say for how many rounds a dataset has questions, as far as its sample tells."""
    if lasting.about == math.inf:
        return f"at least {lasting.surely:,} rounds"
    return f"about {int(lasting.about):,} rounds (at least {lasting.surely:,})"


def draw_sample(task: TaskChoice, *, verifier: AnyVerifier) -> DrawnTask:
    """Return a question of a task that no season asks. Raises RefusedError."""
    return verifier.draw(
        key=SAMPLE_KEY,
        part=Part.TRAINING,
        dataset=task.dataset,
        config=task.config,
        seed=0,
        counter=0,
    )


class RoundForm(forms.Form):
    """When a round that is made by hand opens, and in which season."""

    required_css_class = "required"

    season = forms.ModelChoiceField(Season.objects.all())
    opens_at = forms.SplitDateTimeField(
        widget=AdminSplitDateTime,
        help_text="A time that is past means at once. While another round is open, it waits.",
    )

    def clean_season(self) -> Season:
        """Let only the running season have rounds."""
        season: Season = self.cleaned_data["season"]
        if season.state != Season.State.RUNNING:
            raise forms.ValidationError(
                f"{season} is {season.get_state_display().lower()}: only the season that runs has "
                "rounds. Start it first, or choose the one that runs."
            )
        return season


class ReasonForm(forms.Form):
    """Why the operator decides what everybody will see."""

    required_css_class = "required"

    reason = forms.CharField(
        max_length=Ruling._meta.get_field("reason").max_length,
        widget=AdminTextInputWidget(attrs={"autofocus": True, "class": "vLargeTextField"}),
        help_text="Everybody can read it, on the page of the round or the node.",
    )
