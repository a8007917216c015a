"""Checks as text for a terminal. Pure; what the site said cannot steer the terminal."""

from collections.abc import Sequence

from rich.text import Text

from node_client.commands.verification.checks import Check, Difference, Outcome
from node_client.display.terminal import fold_line

_SIGNS = {
    Outcome.HOLDS: ("✓", "green"),
    Outcome.DOUBTFUL: ("!", "yellow"),
    Outcome.DIFFERS: ("✗", "red"),
    Outcome.SKIPPED: ("–", "dim"),
    Outcome.UNKNOWN: ("?", "yellow"),
}
_NAME_WIDTH = 13
_SIDE_CHARS = 160


def draw_check(check: Check) -> Text:
    """Return a check's line, and a line for each of its first differences."""
    sign, style = _SIGNS[check.outcome]
    line = Text.assemble((sign, style), f" {check.name:{_NAME_WIDTH}}{fold_line(check.compared)}")
    for difference in check.differences.first:
        line.append(f"\n    {_describe(difference)}")
    unnamed = check.differences.count - len(check.differences.first)
    if unnamed:
        line.append(f"\n    … and {unnamed:,} more")
    return line


def conclude_checks(subject: str, outcomes: Sequence[Outcome]) -> tuple[Outcome, str]:
    """Return what all checks together came to, and how to say it."""
    if Outcome.DIFFERS in outcomes:
        return Outcome.DIFFERS, f"{subject}: something is not as the site published it."
    if Outcome.UNKNOWN in outcomes:
        return Outcome.UNKNOWN, (
            f"{subject} could not be checked on this machine. "
            "The lines with a question mark say why; `swarm-node doctor` tests the verifier."
        )
    if Outcome.DOUBTFUL in outcomes:
        return Outcome.DOUBTFUL, (
            f"{subject}: nothing differs, but not all of it can be confirmed: see the lines "
            "with an exclamation mark."
        )
    return Outcome.HOLDS, f"{subject}: all is as the site published it."


def _describe(difference: Difference) -> str:
    where, published, ours = (
        fold_line(text, most=_SIDE_CHARS)
        for text in (difference.where, difference.published, difference.ours)
    )
    return f"{where}: published {published}; here {ours}"
