"""Reads name, type, default and help of every setting from RunConfig and TrainConfig."""

import ast
import linecache
import sys
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import Meta

from node_client.settings.run_config import RunConfig
from node_client.settings.train_config import TrainConfig

PREFIX = "SWARM_"
# Settings that default to the value of the last run with the same coordinator.
REMEMBERED = ("model", "arm", "token")
WIDEST = 12  # characters that --help has for a placeholder beside the longest option in 80 columns


@dataclass(frozen=True)
class Setting:
    """One setting, a field of a dataclass; `annotation` is its type, with any limits (`Meta`)."""

    name: str
    annotation: Any
    default: object
    help: str
    secret: bool

    @property
    def flag(self) -> str:
        """The option on the command line, such as `--save-steps`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """The environment variable, such as `SWARM_SAVE_STEPS`."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def optional(self) -> bool:
        """Whether the value of the setting may be None."""
        return NoneType in _alternatives(self.annotation)

    @property
    def core(self) -> Any:
        """The type of the value, without None and limits, such as `int`, a Literal or a tuple."""
        return _without_limits(self._some)[0]

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed values of a Literal; empty for other types."""
        return get_args(self.core) if get_origin(self.core) is Literal else ()

    @property
    def placeholder(self) -> str:
        """The placeholder for a value in --help, such as `INT`, `PATH` or `none|luffy`."""
        if self.choices:
            words = "|".join(self.choices)
            return words if len(words) <= WIDEST else "WORD"
        if get_origin(self.core) is tuple:
            return "A,B,…"
        return {int: "INT", float: "FLOAT", Path: "PATH"}.get(self.core, "TEXT")

    @property
    def allowed(self) -> str:
        """The allowed values in words, such as `a whole number of at least 1, or none`."""
        core, limits = _without_limits(self._some)
        described = [limit.description for limit in limits if limit.description]
        text = described[0] if described else _describe(core) + _describe_limits(limits)
        return f"{text}, or none" if self.optional else text

    @property
    def _some(self) -> Any:
        [kind] = [each for each in _alternatives(self.annotation) if each is not NoneType]
        return kind


@cache
def settings_of(model: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass, in the order of its fields."""
    texts = read_help(model)
    kinds = get_type_hints(model, include_extras=True)
    return tuple(
        Setting(
            name=field.name,
            annotation=kinds[field.name],
            default=field.default,
            help=texts.get(field.name, ""),
            secret=not field.repr,
        )
        for field in fields(model)
    )


@cache
def all_settings() -> dict[str, Setting]:
    """Return every setting by name.

    RunConfig and TrainConfig both have a setting `arm`. The result has the one of RunConfig.
    """
    run = {setting.name: setting for setting in settings_of(RunConfig)}
    return run | {
        setting.name: setting for setting in settings_of(TrainConfig) if setting.name not in run
    }


def read_help(model: type) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, by field name.

    Fields without a docstring are left out. Python discards attribute docstrings (PEP 257), so they
    are read from the source. The source is read with linecache, which also finds it in a zip file.
    """
    module = sys.modules[model.__module__]
    source = "".join(linecache.getlines(module.__file__ or "", vars(module)))
    texts = {}
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.ClassDef) and statement.name == model.__name__:
            for above, below in pairwise(statement.body):
                match above, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        texts[name] = " ".join(text.split())
    return texts


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _without_limits(annotation: Any) -> tuple[Any, tuple[Meta, ...]]:
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    core, *extras = get_args(annotation)
    return core, tuple(extra for extra in extras if isinstance(extra, Meta))


def _describe(core: Any) -> str:
    if get_origin(core) is Literal:
        return f"one of {', '.join(get_args(core))}"
    if get_origin(core) is tuple:
        return f"a list ({_describe(get_args(core)[0])} each)"
    names = {int: "a whole number", float: "a number", bool: "true or false", Path: "a path"}
    return names.get(core, "text")


def _describe_limits(limits: tuple[Meta, ...]) -> str:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    texts = [
        f"{word} {value:g}"
        for limit in limits
        for key, word in words.items()
        if (value := getattr(limit, key)) is not None
    ]
    return f" of {' and '.join(texts)}" if texts else ""
