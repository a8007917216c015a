"""The command `swarm-node verify-round`: fetches, checks and shows a round."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from tempfile import TemporaryFile

from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from node_client.commands.verification import download
from node_client.commands.verification.audit import audit_round
from node_client.commands.verification.beacon import check_beacon, fetch_value, named_beacon
from node_client.commands.verification.chain import (
    Chain,
    check_chain,
    check_fixed,
    read_chain,
    read_histories,
)
from node_client.commands.verification.checks import CheckOutcome, RoundCheck, skip
from node_client.commands.verification.download import (
    MissingError,
    fetch,
    fetch_record,
    read_lines,
    save,
)
from node_client.commands.verification.evidence import Evidence
from node_client.commands.verification.records import (
    PublishedRound,
    read_answer,
    read_asked,
    read_round,
)
from node_client.commands.verification.report import show_checks
from node_client.commands.verification.results import check_results, read_results
from node_client.display.terminal import fold_line
from node_client.errors import SettingsError, UncheckableError
from node_client.site import Site
from node_client.storage.commitments import find_commitment
from node_client.storage.heads import find_heads
from node_client.storage.receipts import find_receipts
from node_client.storage.state import StateDir
from swarm_tasks.beacon import BEACON_URLS
from swarm_tasks.pool import AnyVerifier


def verify_round(
    site: Site,
    number: int,
    *,
    state: StateDir,
    console: Console,
    verifier: AnyVerifier,
    beacon_urls: Sequence[str] = BEACON_URLS,
) -> CheckOutcome:
    """Check round `number`, show each result as soon as it is known, and return the outcome.

    `state` is the folder of this machine's node, with its records. `beacon_urls` has servers of the
    public beacon. Raises UncheckableError if data of the site cannot be downloaded, saved or read,
    or if a file in the folder cannot be read. But if an earlier check has found a difference, this
    error is only shown, and the outcome is DIFFERS.
    """
    with console.status(f"Fetching round {number}"):
        published = read_round(fetch_record(site.round_record(number)))
    season = fold_line(published.rules.season, limit=80)
    console.print(Text(f"Round {number} of {site.base}, season {season}"), soft_wrap=True)
    checks = _run_checks(
        site,
        number,
        published,
        state=state,
        console=console,
        verifier=verifier,
        beacon_urls=beacon_urls,
    )
    return show_checks(f"Round {number}", checks, console=console)


def _run_checks(
    site: Site,
    number: int,
    published: PublishedRound,
    *,
    state: StateDir,
    console: Console,
    verifier: AnyVerifier,
    beacon_urls: Sequence[str],
) -> Iterator[RoundCheck]:
    evidence = Evidence(published)
    with own_records():
        recorded = find_commitment(state.commitments, site=site, number=number)
        heads = find_heads(state.heads, site=site)
    with console.status("Fetching the chain"):
        chain = fetch_read_chain(site)
    yield check_chain(chain, heads)
    history = read_histories(chain).get(number) if chain is not None else None
    if chain is not None:
        yield check_fixed(published, chain, history)
    beacon, fetched = named_beacon(published), None
    if beacon is not None:
        with console.status("Asking servers of the public beacon"):
            fetched = fetch_value(beacon, urls=beacon_urls)
    scheduled = history.scheduled if history else None
    yield check_beacon(
        published,
        fetched=fetched,
        scheduled=scheduled,
        before=chain.before(scheduled) if chain and scheduled else (),
        recorded=recorded,
    )
    with TemporaryFile() as earlier, TemporaryFile() as file:
        if not published.rules.may_repeat:
            with console.status("Fetching what was asked before"):
                save(site.round_asked(number), into=earlier, max_bytes=download.MAX_ASKED_BYTES)
        with console.status("Fetching the answers"):
            answers = site.round_answers(number)
            lines = save(answers, into=file, max_bytes=download.MAX_ANSWERS_BYTES)
        earlier.seek(0)
        file.seek(0)
        bar = Progress(console=console, transient=True, disable=not console.is_terminal)
        with bar:
            scoring = bar.add_task("Scoring the answers again", total=lines)
            yield from audit_round(
                published,
                number=number,
                recorded=recorded,
                asked=map(read_asked, read_lines(earlier)),
                answers=evidence.collecting(map(read_answer, read_lines(file))),
                verifier=verifier,
                progress=lambda done: bar.advance(scoring, done),
            )
    yield evidence.check_signatures()
    yield evidence.check_root()
    with own_records():
        receipts = find_receipts(state.receipts, site=site, number=number)
    yield evidence.check_receipts(receipts, chain.keys if chain else set())
    if published.results_root:
        yield check_results(published, read_results(fetch_record(site.round_results(number))))
    else:
        yield skip("results", "the round is older than the chain")


@contextmanager
def own_records() -> Iterator[None]:
    """Raise UncheckableError if the body cannot read a file with this machine's records.

    The exit code for SettingsError would mean that something differs.
    """
    try:
        yield
    except SettingsError as problem:
        raise UncheckableError(problem.message, fix=problem.fix) from problem


def fetch_read_chain(site: Site) -> Chain | None:
    """Download and parse a site's chain; None if the site publishes none.

    Raises UncheckableError if it cannot be downloaded.
    """
    try:
        raw = fetch(site.chain, max_bytes=download.MAX_CHAIN_BYTES)
    except MissingError:
        return None
    return read_chain(raw.splitlines())
