"""Compare a benchmark's figures with targets, print tables, and write the figures as JSON."""

import json
import os
import platform
import subprocess
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

PROJECT = Path(__file__).resolve().parent.parent
RESULTS = PROJECT / "bench" / "results"


@dataclass(frozen=True)
class Target:
    """A bound on the figure with the name `figure`: either `at_most` or `at_least` is given."""

    figure: str
    label: str
    unit: str
    at_most: float | None = None
    at_least: float | None = None

    def is_met(self, value: float) -> bool:
        """Return whether a value is within the bound."""
        high_enough = self.at_least is None or value >= self.at_least
        return high_enough and (self.at_most is None or value <= self.at_most)

    @property
    def bound(self) -> str:
        """The bound as text, such as `≤ 0.8`."""
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"


def print_targets(
    figures: Mapping[str, float], targets: Sequence[Target], *, title: str = "Promised figures"
) -> bool:
    """Print each target with the measured figure; return whether all targets are met."""
    rows, are_met = [], True
    for target in targets:
        value = figures[target.figure]
        is_met = target.is_met(value)
        verdict = "[green]kept[/]" if is_met else "[red]missed[/]"
        rows.append((target.label, f"{value:,.3g}", target.bound, target.unit, verdict))
        are_met &= is_met
    headings = ("figure", "measured", "bound", "unit", "")
    print_table(title, headings, rows, left=("figure", "unit", ""))
    return are_met


def print_table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Container[str] | None = None,
    caption: str = "",
    width: int | None = None,
) -> None:
    """Print a table; `width` is in characters, by default that of the terminal.

    The columns in `left`, by default the first one, are aligned left, the others right.
    """
    table = Table(title=title, caption=caption)
    for heading in headings:
        is_left = heading in (headings[:1] if left is None else left)
        table.add_column(heading, justify="left" if is_left else "right")
    for row in rows:
        table.add_row(*row)
    Console(width=width).print(table)


def conclude(name: str, figures: Mapping[str, Any], targets: Sequence[Target]) -> int:
    """Print the targets and write the results; return the exit status, 1 if a target is missed."""
    kept = print_targets(figures, targets)
    print(f"written to {write_results(name, figures)}")  # noqa: T201 - a command's output
    return 0 if kept else 1


def write_results(name: str, figures: Mapping[str, object], *, accelerator: str = "") -> Path:
    """Write bench/results/NAME.json and return its path.

    `accelerator` names the GPU that was measured, if any.
    """
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    result = {
        "name": name,
        "commit": _commit(),
        "machine": "; ".join(filter(None, (accelerator, describe_machine()))),
        "figures": dict(figures),
    }
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def describe_machine() -> str:
    """Return a description of this machine: cores, memory, processor, system and Python."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = platform.processor() or platform.machine()
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GB, {processor}, "
        f"{platform.system()}, Python {platform.python_version()}"
    )


def _commit() -> str:
    """Return the current commit, with + if files differ from it; `unknown` without git."""
    command = ["git", "describe", "--always", "--dirty=+"]
    try:
        described = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True)
    except FileNotFoundError:  # git may be missing, for example on a rented machine
        return "unknown"
    return described.stdout.strip() or "unknown"
