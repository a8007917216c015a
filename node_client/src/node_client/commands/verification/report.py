"""Renders the results of checks for a terminal, without control characters from the site."""

from collections.abc import Sequence

from rich.text import Text

from node_client.commands.verification.checks import CheckOutcome, Difference, RoundCheck
from node_client.display.terminal import fold_line

_SIGNS = {
    CheckOutcome.HOLDS: ("✓", "green"),
    CheckOutcome.DOUBTFUL: ("!", "yellow"),
    CheckOutcome.DIFFERS: ("✗", "red"),
    CheckOutcome.SKIPPED: ("–", "dim"),
    CheckOutcome.UNKNOWN: ("?", "yellow"),
}
_NAME_WIDTH = 13
_SIDE_CHARS = 160


def render_check(check: RoundCheck) -> Text:
    """Return a line about a check, and a line about each of its first differences."""
    sign, style = _SIGNS[check.outcome]
    line = Text.assemble((sign, style), f" {check.name:{_NAME_WIDTH}}{fold_line(check.compared)}")
    for difference in check.differences.first:
        line.append(f"\n    {_describe(difference)}")
    unnamed = check.differences.count - len(check.differences.first)
    if unnamed:
        line.append(f"\n    … and {unnamed:,} more")
    return line


def conclude_checks(subject: str, outcomes: Sequence[CheckOutcome]) -> tuple[CheckOutcome, str]:
    """Return the outcome of all checks together, and a sentence that states it for `subject`.

    The outcome is the first of DIFFERS, UNKNOWN and DOUBTFUL that is among `outcomes`, or HOLDS if
    none of the three is.
    """
    if CheckOutcome.DIFFERS in outcomes:
        return CheckOutcome.DIFFERS, f"{subject}: something is not as the site published it."
    if CheckOutcome.UNKNOWN in outcomes:
        return CheckOutcome.UNKNOWN, (
            f"{subject} could not be checked on this machine. "
            "The lines with a question mark say why; `swarm-node doctor` tests the verifier."
        )
    if CheckOutcome.DOUBTFUL in outcomes:
        return CheckOutcome.DOUBTFUL, (
            f"{subject}: nothing differs, but not all of it can be confirmed: see the lines "
            "with an exclamation mark."
        )
    return CheckOutcome.HOLDS, f"{subject}: all is as the site published it."


def _describe(difference: Difference) -> str:
    where, published, ours = (
        fold_line(text, limit=_SIDE_CHARS)
        for text in (difference.where, difference.published, difference.ours)
    )
    return f"{where}: published {published}; here {ours}"
