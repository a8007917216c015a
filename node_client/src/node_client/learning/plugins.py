"""Parts of the training that a participant can replace by a custom class."""

from collections.abc import Mapping
from importlib import import_module
from typing import TypeVar

from node_client.errors import SettingsError

PluginT = TypeVar("PluginT")


def make_plugin(
    name: str, *, known: Mapping[str, type[PluginT]], base: type[PluginT], setting: str
) -> PluginT:
    """Return an instance of the class that `name` stands for.

    `name` is a key of `known`, or `package.module:Class`. Raises SettingsError if there is no such
    class, if it cannot be imported or instantiated without arguments, or if it does not derive from
    `base`. `setting` is the setting whose value is `name`; the error message names it.
    """
    if name in known:
        return known[name]()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise SettingsError(
            f"{setting} cannot be {name}.",
            fix=f"Choose one of {', '.join(known)}, or your own class as package.module:Class.",
        )
    try:
        named = getattr(import_module(module), attribute)
    except Exception as problem:  # a participant's own module may raise anything
        raise SettingsError(
            f"{setting}: {name} cannot be imported: {problem}.",
            fix="Check the spelling, that the module is on PYTHONPATH, and its code.",
        ) from problem
    if not (isinstance(named, type) and issubclass(named, base)):
        raise SettingsError(
            f"{setting}: {name} is not a {base.__name__}.",
            fix=f"Derive the class from {base.__module__}.{base.__name__}.",
        )
    try:
        return named()
    except Exception as problem:  # so may its class
        raise SettingsError(
            f"{setting}: {name} cannot be made: {problem}.",
            fix="Name a class that needs no arguments and has all methods of its base.",
        ) from problem
