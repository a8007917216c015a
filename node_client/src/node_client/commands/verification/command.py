"""The command `swarm-node verify-round`: fetches, checks and shows."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from node_client.commands.verification.audit import audit_round
from node_client.commands.verification.checks import Check, Outcome
from node_client.commands.verification.download import (
    fetch_answers,
    fetch_asked,
    fetch_round,
    read_answers,
    read_earlier,
)
from node_client.commands.verification.records import PublishedRound, read_round
from node_client.commands.verification.report import conclude_round, draw_check
from node_client.display.terminal import fold_line
from node_client.errors import UncheckableError
from node_client.site import Site
from node_client.storage.commitments import NotedCommitment, find_commitment
from swarm_tasks.pool import AnyVerifier


def verify_round(
    site: Site, number: int, *, commitments: Path, console: Console, verifier: AnyVerifier
) -> Outcome:
    """Check a round, show each result as it comes, and return what they come to.

    `commitments` is where this machine's node noted what it saw. Raises NodeError when the round
    cannot be checked.
    """
    noted = find_commitment(commitments, site=site, number=number)
    with console.status(f"Fetching round {number}"):
        published = read_round(fetch_round(site, number))
    season = fold_line(published.rules.season, most=80)
    console.print(Text(f"Round {number} of {site.base}, season {season}"), soft_wrap=True)
    outcomes = []
    checks = _run_checks(site, number, published, noted=noted, console=console, verifier=verifier)
    try:
        for check in checks:
            outcomes.append(check.outcome)
            console.print(draw_check(check), soft_wrap=True)
    except UncheckableError as problem:
        # What was refuted stays so, whatever cannot be told about the rest.
        if Outcome.DIFFERS not in outcomes:
            raise
        console.print(Text(f"? {problem.message}\n{problem.fix}"), soft_wrap=True)
    outcome, words = conclude_round(number, outcomes)
    console.print(Text(words), soft_wrap=True)
    return outcome


def _run_checks(
    site: Site,
    number: int,
    published: PublishedRound,
    *,
    noted: NotedCommitment | None,
    console: Console,
    verifier: AnyVerifier,
) -> Iterator[Check]:
    with TemporaryFile() as earlier, TemporaryFile() as file:
        if not published.rules.may_repeat:
            with console.status("Fetching what was asked before"):
                fetch_asked(site, number, into=earlier)
        with console.status("Fetching the answers"):
            lines = fetch_answers(site, number, into=file)
        earlier.seek(0)
        file.seek(0)
        bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        with bar:
            scoring = bar.add_task("Scoring the answers again", total=lines)
            yield from audit_round(
                published,
                number=number,
                noted=noted,
                asked=read_earlier(earlier),
                answers=read_answers(file),
                verifier=verifier,
                progress=lambda done: bar.advance(scoring, done),
            )
