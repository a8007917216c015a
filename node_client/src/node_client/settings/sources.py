"""Reads settings from their sources: command line, environment, file, record of the last run.

Each source gives a layer: the values that it has, by the names of the settings.
"""

import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Any, get_origin

import msgspec

from node_client.errors import SettingsError
from node_client.settings.fields import PREFIX, REMEMBERED, Setting, all_settings
from node_client.storage.state import NodeRecord

FILE_NAME = "swarm-node.toml"
DEMO_MODELS = ("tiny", "small", "tiny-rare", "small-rare")


class Source(StrEnum):
    """Kinds of sources, the highest priority first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    REMEMBERED = "remembered"
    DEFAULT = "default"


@dataclass(frozen=True)
class GivenValue:
    """A value of a setting. `place` says, for the user, where it was given, such as a file."""

    value: Any
    source: Source
    place: str


Layer = dict[str, GivenValue]


def read_flags(flags: Mapping[str, object]) -> Layer:
    """Return the values of the options that were given on the command line.

    An option whose value in `flags` is None was not given. Raises SettingsError for an invalid
    value.
    """
    settings = all_settings()
    return {
        name: GivenValue(_convert_given(settings[name], value), Source.FLAG, settings[name].flag)
        for name, value in flags.items()
        if value is not None
    }


def read_environment(environment: Mapping[str, str]) -> Layer:
    """Return the values in the environment; empty and blank variables do not count.

    Raises SettingsError for an invalid value.
    """
    layer: Layer = {}
    for name, setting in all_settings().items():
        text = environment.get(setting.variable, "").strip()
        if text:
            value = convert_text(setting, text, place=setting.variable)
            layer[name] = GivenValue(value, Source.ENVIRONMENT, setting.variable)
    return layer


def unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield a warning for each unknown SWARM_ variable, with the most similar name, if any."""
    variable_names = {setting.variable for setting in all_settings().values()}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in variable_names:
            guess = _did_you_mean(name, variable_names)
            yield f"{name} in the environment is not a setting.{guess}"


def read_file(path: Path) -> Layer:
    """Return the values in a settings file.

    Relative paths are relative to the file's folder. Raises SettingsError if the file cannot be
    read, or if it has an unknown setting or an invalid value. Also raises it if the file sets
    `config`, because a file cannot name another one.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise SettingsError(
            f"{path} cannot be read: {problem}",
            fix="Check the file; `swarm-node config init` writes one with every setting.",
        ) from problem
    settings = all_settings()
    layer: Layer = {}
    for name, value in content.items():
        if name not in settings or name == "config":
            raise SettingsError(
                f"{path}: {name} is not a setting.{_did_you_mean(name, settings)}",
                fix="`swarm-node config show` lists the settings.",
            )
        checked = convert_value(settings[name], value, place=f"{path}: {name}")
        if isinstance(checked, Path):
            checked = path.parent / checked
        elif name == "model":
            checked = resolve_model(checked, folder=path.parent)
        layer[name] = GivenValue(checked, Source.FILE, str(path))
    return layer


def resolve_model(model: str, *, folder: Path = Path()) -> str:
    """Return the absolute path of the model if it is a folder; otherwise return its name unchanged.

    A relative path is looked up in `folder`. The names of the demo's models, such as `tiny`, never
    mean a folder. With the absolute path, the next run finds the model even from another current
    folder.
    """
    path = folder / os.path.expanduser(model)
    # Path.is_dir would raise for a folder that cannot be read and for a long name.
    is_folder = os.path.isdir(path)
    return str(path.resolve()) if is_folder and model not in DEMO_MODELS else model


def read_record_settings(remembered: NodeRecord) -> Layer:
    """Return the values that the last run with this coordinator saved: model, arm and token."""
    values = {name: getattr(remembered, name) for name in REMEMBERED}
    return {
        name: GivenValue(value, Source.REMEMBERED, "as last time")
        for name, value in values.items()
        if value
    }


def find_file(given: Path | None, *, here: Path, state: Path | None) -> Path | None:
    """Return the path of the settings file; None if there is none.

    It is `given` (which need not exist), or else swarm-node.toml in the folder `here`, or else in
    the folder `state`.
    """
    if given is not None:
        return given
    folders = [here] if state is None else [here, state]
    paths = (folder / FILE_NAME for folder in folders)
    # Path.is_file would raise for a folder that cannot be read and for a long name.
    return next((path for path in paths if os.path.isfile(path)), None)


def convert_text(setting: Setting, text: str, *, place: str) -> Any:
    """Return the value of a setting that is given as text.

    `none` gives None if the setting may be None, and an empty list if it is a list, whose items are
    separated by commas. Raises SettingsError, which names `place`, for a value that is not allowed.
    """
    text = text.strip()
    value: object = text
    is_none = text.lower() == "none"
    if setting.optional and is_none:
        value = None
    elif get_origin(setting.core) is tuple:
        parts = [] if is_none else text.split(",")
        value = [part.strip() for part in parts if part.strip()]
    elif setting.core is float:
        # In any of Python's notations, such as `.5`: msgspec takes only JSON's.
        with suppress(ValueError):
            value = float(text)
    return _convert(setting, value, strict=False, place=place)


def convert_value(setting: Setting, value: object, *, place: str) -> Any:
    """Return the value of a setting that is given as a value in a TOML file.

    Raises SettingsError, which names `place`, for a value that is not allowed or of another type,
    such as the text "5" for a number.
    """
    return _convert(setting, value, strict=True, place=place)


def _convert_given(setting: Setting, value: object) -> Any:
    if isinstance(value, str):
        return convert_text(setting, value, place=setting.flag)
    return value  # a flag without a value: --plain, --no-plain


def _convert(setting: Setting, value: object, *, strict: bool, place: str) -> Any:
    try:
        checked = msgspec.convert(value, setting.annotation, strict=strict, dec_hook=_make_path)
        if isinstance(checked, float) and not math.isfinite(checked):
            raise msgspec.ValidationError
    except msgspec.ValidationError:
        shown = "a value that is not shown" if setting.secret else repr(value)
        raise SettingsError(
            f"{place} is {shown}, but must be {setting.allowed}.",
            fix=f"{setting.name}: {setting.help}",
        ) from None
    return checked


def _make_path(kind: type, value: object) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value).expanduser()
    raise msgspec.ValidationError


def _did_you_mean(name: str, names: Mapping[str, object] | set[str]) -> str:
    nearest = get_close_matches(name, names, n=1)
    return f" Did you mean {nearest[0]}?" if nearest else ""
