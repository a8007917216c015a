"""Generates a command-line option for each setting."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from node_client.settings.config import choose
from node_client.settings.fields import REMEMBERED, Setting, all_settings
from node_client.settings.panels import panel_of, panels
from node_client.site import parse_site


def takes_settings(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds options for the named settings to a command.

    Without names, it adds options for all settings. The command receives the values of all settings
    as the keyword argument `choices` (`SettingChoices`).

    If the command has an argument `url`, this is the coordinator's address and determines
    `choices.site`. If the command has no `url`, or if `url` is empty, `choices.site` is None. There
    is one exception: if the command declares `url` without a default, an empty `url` raises
    SettingsError.
    """
    ordered = [setting for group in panels().values() for setting in group]
    chosen = [all_settings()[name] for name in names] or ordered

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        declared = inspect.signature(command).parameters.get("url")
        requires_url = declared is not None and declared.default is inspect.Parameter.empty

        @wraps(command)
        def run(**arguments: Any) -> None:
            flags = {setting.name: arguments.pop(setting.name) for setting in chosen}
            for setting in chosen:
                if setting.core is bool and arguments.pop(_negated(setting)):
                    flags[setting.name] = False
            url: str = arguments.get("url") or ""
            site = parse_site(url) if url or requires_url else None
            command(**arguments, choices=choose(site, flags=flags))

        run.__signature__ = _signature(command, chosen)  # type: ignore[attr-defined]  # typer's
        return run

    return decorate


def _signature(command: Callable[..., None], chosen: Sequence[Setting]) -> inspect.Signature:
    own = inspect.signature(command, eval_str=True)
    kept = [each for each in own.parameters.values() if each.name != "choices"]
    added = [parameter for setting in chosen for parameter in _parameters(setting)]
    return own.replace(parameters=[*kept, *added])


def _parameters(setting: Setting) -> Iterator[inspect.Parameter]:
    is_switch = setting.core is bool
    option = typer.Option(
        setting.flag,
        help=_help(setting),
        metavar="" if is_switch else setting.placeholder,
        show_default=False,
        rich_help_panel=panel_of(setting),
    )
    yield _keyword(setting.name, bool if is_switch else str, option)
    if is_switch:
        # Switches off what a file or the environment switched on. Not listed in help.
        opposite = typer.Option(f"--no-{setting.flag[2:]}", hidden=True)
        yield _keyword(_negated(setting), bool, opposite)


def _keyword(name: str, kind: type, option: Any) -> inspect.Parameter:
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
    )


def _help(setting: Setting) -> str:
    """Return the setting's help text with its default, unless that is None, False or empty.

    If the placeholder is `WORD`, the text lists the allowed words.
    """
    text = setting.help.replace("`", "")
    if setting.choices and setting.placeholder == "WORD":
        text += f" One of {', '.join(setting.choices)}."
    default = setting.default
    if default is None or default is False or default in ("", ()):
        return text
    default_text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    before = "as last time, else " if setting.name in REMEMBERED else ""
    return f"{text} (default {before}{default_text})"


def _negated(setting: Setting) -> str:
    return f"no_{setting.name}"
