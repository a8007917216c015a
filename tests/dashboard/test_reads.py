"""Test that pages, API and live socket read the database only through reports."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import PROJECT

DASHBOARD = PROJECT / "swarm_web" / "dashboard"
FOLDERS = ("pages", "api", "live")
# Names of the ORM: managers, and methods that build or run queries.
QUERIES = {"objects", "filter", "exclude", "annotate", "aggregate", "order_by", "values_list"}
QUERIES |= {"select_related", "prefetch_related", "bulk_create", "raw", "cursor"}
SHORTCUTS = {"get_object_or_404", "get_list_or_404", "connection"}


def find_reads(source: str) -> Iterator[str]:
    """Yield the parts of a module that read the database or import a selector."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in QUERIES:
            yield f"line {node.lineno}: .{node.attr}"
        elif isinstance(node, ast.Name) and node.id in SHORTCUTS:
            yield f"line {node.lineno}: {node.id}"
        elif isinstance(node, ast.ImportFrom) and ".selectors" in (node.module or ""):
            yield f"line {node.lineno}: from {node.module}"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(DASHBOARD)))
        for folder in FOLDERS
        for path in sorted((DASHBOARD / folder).rglob("*.py"))
    ],
)
def test_module_does_not_read_the_database(path: Path) -> None:
    assert list(find_reads(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        "Node.objects.first()",
        "season.rounds.order_by('number')",
        "get_object_or_404(Node, name=name)",
        "from judge.selectors.seasons import shown_season",
        "from swarm_web.relay.selectors import find_rollout",
    ],
)
def test_each_kind_of_read_is_detected(source: str) -> None:
    assert len(list(find_reads(source))) == 1
