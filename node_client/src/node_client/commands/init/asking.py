"""The dialogue of `swarm-node init`: asks the questions, and writes the text of the file."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from node_client.commands.init.machine import Fit, Machine, choose_model, fit_models
from node_client.errors import SettingsError
from node_client.settings.fields import all_settings
from node_client.settings.hours import parse_hours
from node_client.settings.sources import convert_text

Answers = dict[str, Any]
# Called with a question and a proposal; returns the answer.
Ask = Callable[[str, str], str]

ANY_TIME = "any time"


def prompt(question: str, proposal: str) -> str:
    """Ask at the terminal and return the answer, or `proposal` if the answer is empty.

    Raises SettingsError when the input ends or is interrupted.
    """
    try:
        answer: str = typer.prompt(question, default=proposal)
    except typer.Abort as problem:
        raise SettingsError(
            "There was no answer, so nothing was written.",
            fix="Run it in a terminal, or with --yes to accept every proposal.",
        ) from problem
    return answer


def accept_default(question: str, proposal: str) -> str:
    """Return the proposal without asking, for --yes."""
    return proposal


def ask_questions(machine: Machine, *, ask: Ask, console: Console) -> Answers:
    """Ask for the settings that depend on the machine and its owner, and return them by name.

    `model` is always included, the others only if they differ from the default.
    """
    answers: Answers = {}
    if machine.device == "cuda":
        share = _ask_for("gpu_fraction", "Part of the GPU's memory, up to 1", "1", ask=ask)
        answers["gpu_fraction"] = None if share == 1 else share
    fits = fit_models(machine, fraction=answers.get("gpu_fraction") or 1.0)
    console.print(render_fits(fits))
    answers["model"] = _ask_for_model(fits, device=machine.device, ask=ask)
    answers["device"] = _ask_for("device", "Device", "auto", ask=ask)
    answers["hours"] = _ask_for_hours(ask)
    if machine.battery:
        answers["pause_on_battery"] = _ask_yes("Pause while on battery?", "y", ask=ask)
    question = "Show the device's name and memory on the node's page?"
    answers["share_hardware"] = _ask_yes(question, "n", ask=ask)
    settings = all_settings()
    return {
        name: value
        for name, value in answers.items()
        if name == "model" or value not in (None, settings[name].default)
    }


def render_machine(machine: Machine) -> str:
    """Return one line about the machine."""
    return (
        f"Found: {machine.title}, {_gb(machine.free)} free to train in, {_gb(machine.memory)} RAM, "
        f"{machine.cores} cores, {_gb(machine.disk)} of disk."
    )


def render_fits(fits: list[Fit]) -> Table:
    """Return a numbered table of models: the memory that each needs, and what this machine lacks.

    Models that do not fit are dimmed.
    """
    table = Table("", "model", "params", "memory", "", box=SIMPLE_HEAD, pad_edge=False)
    for number, fit in enumerate(fits, start=1):
        remark = fit.lacking or ("asks for consent" if fit.model.gated else "")
        table.add_row(
            *(str(number), fit.model.name, f"{fit.model.parameters / 1e9:.2f} B"),
            *(_gb(fit.needed), remark),
            style="dim" if fit.lacking else "",
        )
    return table


def write_settings(answers: Mapping[str, Any]) -> str:
    """Return the text of a swarm-node.toml with the answers, each below the setting's help."""
    parts = ["# Written by `swarm-node init`. Command line and environment have priority.\n"]
    for name, value in answers.items():
        parts.append(f"\n# {all_settings()[name].help}\n{name} = {_encode(value)}\n")
    return "".join(parts)


def _encode(value: object) -> str:
    """Return a value as TOML, which has no escapes for the surrogate pairs that JSON allows."""
    return json.dumps(value, ensure_ascii=False)


def _ask_for_model(fits: list[Fit], *, device: str, ask: Ask) -> str:
    slow = " (without a GPU even small ones are slow)" if device == "cpu" else ""
    proposal = choose_model(fits, device=device)
    answer = ask(f"Model{slow}: a number, a hub name or a folder", proposal).strip()
    if answer.isdecimal() and 1 <= int(answer) <= len(fits):
        return fits[int(answer) - 1].model.name
    return answer


def _ask_for_hours(ask: Ask) -> str | None:
    while True:
        answer = ask("Hours to train at, such as 22-7", ANY_TIME)
        if answer == ANY_TIME:
            return None
        try:
            hours: str = convert_text(all_settings()["hours"], answer, place="This")
            parse_hours(hours)
        except SettingsError as problem:
            typer.echo(problem.message)
            continue
        return hours


def _ask_for(name: str, question: str, proposal: str, *, ask: Ask) -> Any:
    """Ask until the answer is valid for the setting called `name`, and return its value."""
    while True:
        try:
            return convert_text(all_settings()[name], ask(question, proposal), place="This")
        except SettingsError as problem:
            typer.echo(problem.message)


def _ask_yes(question: str, proposal: str, *, ask: Ask) -> bool:
    while True:
        answer = ask(f"{question} (y/n)", proposal).strip().lower()
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def _gb(size: int) -> str:
    return f"{size / 1e9:.1f} GB"
