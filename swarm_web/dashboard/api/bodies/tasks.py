"""Bodies of answers about a season's tasks."""

from typing import Any

from swarm_web.dashboard.reports.tasks import TaskLine, TaskReport

# What is copied as it is.
_LINE = ("dataset", "weight", "level", "levels", "example", "rates", "informative")
# The columns of the page's table of pass rates.
_PASS_RATE = ("round", "arm", "share", "interval", "n")


def describe_task(line: TaskLine) -> dict[str, Any]:
    """Describe one dataset of a season."""
    return {"config": line.choice.config, **{name: getattr(line, name) for name in _LINE}}


def describe_task_report(report: TaskReport) -> dict[str, Any]:
    """Describe one dataset with its pass rates and some of its questions."""
    return {
        **describe_task(report.line),
        "pass_rates": [dict(zip(_PASS_RATE, row, strict=True)) for row in report.drawing.rows],
        "hardest": report.hardest,
        "easiest": report.easiest,
    }
