"""Test house rules that no linter checks: unique class names, and a layer for every module."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parent.parent
ROOTS = ("swarm_web", "judge", "bench", "node_client/src")
# Django requires these names.
GIVEN = {"Command", "Migration"}
# Imported by the code that starts or configures the site, and importing no layers.
WITHOUT_LAYER = {"catalogues", "celery", "local", "schedule", "settings"}


def public_classes() -> Iterator[tuple[str, str]]:
    """Yield name and file of each public class."""
    for root in ROOTS:
        for path in sorted((PROJECT / root).rglob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name, str(path.relative_to(PROJECT))


def modules_of(package: str) -> set[str]:
    """Return the names of a package's modules and subpackages."""
    folder = PROJECT / package
    found = {path.stem for path in folder.glob("*.py") if path.stem != "__init__"}
    return found | {path.parent.name for path in folder.glob("*/__init__.py")}


def layered_modules() -> set[str]:
    """Return the modules in the import contract of the server's layers."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    [contract] = [
        each
        for each in settings["tool"]["importlinter"]["contracts"]
        if each["name"] == "Server layers"
    ]
    return {name.strip() for layer in contract["layers"] for name in layer.split("|")}


def test_class_names_are_unique() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for name, path in public_classes():
        places[name].append(path)
    assert {
        name: paths for name, paths in places.items() if len(paths) > 1 and name not in GIVEN
    } == {}


def test_every_module_of_the_site_has_a_layer() -> None:
    layered = {name.removeprefix("swarm_web.") for name in layered_modules()}
    assert modules_of("swarm_web") - WITHOUT_LAYER - layered == set()


def test_every_layer_is_a_module() -> None:
    known = {f"swarm_web.{name}" for name in modules_of("swarm_web")}
    known |= {"judge", "swarm_protocol", "swarm_record", "swarm_tasks"}
    assert layered_modules() - known == set()
