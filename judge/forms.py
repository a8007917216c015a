"""Validation of what operators type in the admin."""

from typing import Any

import msgspec
from django import forms

from judge.models import Season
from judge.selectors import task_choices
from judge.verifiers import process_verifier
from swarm_protocol.errors import RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import check_config
from swarm_tasks.keyspace import Part
from swarm_tasks.verifier import DrawnTask, Verifier

MAX_TASKS = 64
SAMPLE_KEY = b"sample shown in the admin"


class SeasonForm(forms.ModelForm[Season]):
    """A season whose every task was generated once, so that a wrong mix never starts."""

    samples: tuple[DrawnTask, ...] = ()

    class Meta:
        model = Season
        fields = (
            "name",
            "tasks",
            "completions",
            "local",
            "external",
            "questions_per_round",
            "cadence_seconds",
            "open_seconds",
            "scoring_seconds",
            "max_new_tokens",
            "temperature",
        )

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

    def clean(self) -> dict[str, Any]:
        """Check what concerns several fields."""
        data = super().clean() or self.cleaned_data
        cadence, open_seconds = data.get("cadence_seconds"), data.get("open_seconds")
        if cadence and open_seconds and cadence <= open_seconds:
            self.add_error(
                "cadence_seconds",
                "A round would still be open when the next one is due: make this longer than "
                "open seconds, or 0 to make rounds by hand.",
            )
        return data


def check_tasks(tasks: list[TaskChoice], *, verifier: Verifier) -> list[DrawnTask]:
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
            samples.append(
                verifier.draw(
                    key=SAMPLE_KEY,
                    part=Part.TRAINING,
                    dataset=task.dataset,
                    config=task.config,
                    seed=0,
                    counter=0,
                )
            )
        except RefusedError as refusal:
            problems.append(f"{task.dataset}: {refusal.message}")
    if problems:
        raise forms.ValidationError(problems)
    return samples
