"""Renders the results of checks for a terminal, without control characters from the site."""

from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from node_client.commands.verification.checks import CheckOutcome, Difference, RoundCheck
from node_client.display.terminal import fold_line
from node_client.errors import UncheckableError

_SIGNS = {
    CheckOutcome.HOLDS: ("✓", "green"),
    CheckOutcome.DOUBTFUL: ("!", "yellow"),
    CheckOutcome.DIFFERS: ("✗", "red"),
    CheckOutcome.SKIPPED: ("–", "dim"),
    CheckOutcome.UNKNOWN: ("?", "yellow"),
}
_NAME_WIDTH = 13
_SIDE_CHARS = 160


def show_checks(subject: str, checks: Iterable[RoundCheck], *, console: Console) -> CheckOutcome:
    """Show each check as soon as it is made, and return the outcome of all checks together.

    Raises UncheckableError if a check raises it. But if an earlier check has found a difference,
    the error is only shown, and the outcome is DIFFERS.
    """
    outcomes = []
    try:
        for check in checks:
            outcomes.append(check.outcome)
            console.print(render_check(check), soft_wrap=True)
    except UncheckableError as problem:
        # A difference that was found is certain, even if the other checks are not possible.
        if CheckOutcome.DIFFERS not in outcomes:
            raise
        console.print(Text(f"? {problem.message}\n{problem.fix}"), soft_wrap=True)
    outcome, words = conclude_checks(subject, outcomes)
    console.print(Text(words), soft_wrap=True)
    return outcome


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
