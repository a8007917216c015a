"""The command `swarm-node verify-season`: fetches a season, checks it and shows the results."""

from collections.abc import Iterator
from time import sleep

from rich.console import Console
from rich.text import Text

from node_client.commands.verification.chain import (
    Chain,
    check_chain,
    read_histories,
)
from node_client.commands.verification.checks import CheckOutcome, RoundCheck, skip
from node_client.commands.verification.command import fetch_read_chain, own_records
from node_client.commands.verification.download import fetch_record
from node_client.commands.verification.listing import (
    ListedRound,
    ListedSeason,
    list_board,
    list_rounds,
    list_seasons,
)
from node_client.commands.verification.report import show_checks
from node_client.commands.verification.results import read_results
from node_client.commands.verification.season import (
    PlayedRound,
    check_board,
    check_rounds,
    check_season_results,
    compute_board,
)
from node_client.display.terminal import fold_line
from node_client.errors import UncheckableError
from node_client.site import Site
from node_client.storage.heads import find_heads
from node_client.storage.state import StateDir
from swarm_record.board_rows import Minimum

# The leaderboard is updated shortly after a round has closed: after a difference it is read again.
PAUSE_S = 5.0


def verify_season(
    site: Site, name: str | None, *, state: StateDir, console: Console
) -> CheckOutcome:
    """Check a season, and return the outcome of all checks together.

    `name` is the season's name, or None for the newest season that has started. Each result is
    shown as soon as it is known. `state` is the folder of this machine's node, with its records.
    Raises NodeError if there is no such season, if it or a file in the folder cannot be read, or if
    the site's chain grows while the season is read. But if an earlier check has found a difference,
    an error of a later check is only shown, and the outcome is DIFFERS.
    """
    season = _choose(list_seasons(site), name)
    subject = f"Season {fold_line(season.season, limit=80)}"
    console.print(Text(f"{subject} of {site.base}"), soft_wrap=True)
    checks = _run_checks(site, season, state=state, console=console)
    return show_checks(subject, checks, console=console)


def _choose(seasons: list[ListedSeason], name: str | None) -> ListedSeason:
    for season in seasons:
        if name is None or season.season == name:
            return season
    raise UncheckableError(
        f"The site has no season {name}." if name else "The site has no season yet.",
        fix="Its seasons are listed at /api/v1/seasons.",
    )


def _run_checks(
    site: Site, season: ListedSeason, *, state: StateDir, console: Console
) -> Iterator[RoundCheck]:
    with own_records():
        heads = find_heads(state.heads, site=site)
    with console.status("Fetching the chain"):
        chain = fetch_read_chain(site)
    yield check_chain(chain, heads)
    chain = chain or Chain([])
    histories = read_histories(chain)
    with console.status("Fetching the rounds"):
        shown, board = list_board(site)
        listed = list_rounds(site)
        played = [
            _fetch_round(site, each)
            for each in listed
            if each.season == season.season and each.closed_at is not None
        ]
    _check_unchanged(site, chain)
    if chain.links:
        yield check_rounds(listed, chain, histories)
    yield check_season_results(played, histories)
    if shown != season.season:
        yield skip("leaderboard", f"the site shows another season than {season.season}")
        return
    drawn = compute_board(
        played,
        minimum=Minimum(season.minimum_questions, season.minimum_attendance),
        questions=season.questions_per_round,
        quarantined=find_quarantined(chain),
    )
    check = check_board(board, drawn)
    if check.outcome is CheckOutcome.DIFFERS:
        sleep(PAUSE_S)
        _, board = list_board(site)
        _check_unchanged(site, chain)
        check = check_board(board, drawn)
    yield check


def _fetch_round(site: Site, listed: ListedRound) -> PlayedRound:
    if listed.phase != "closed":
        return PlayedRound(listed, None)
    return PlayedRound(listed, read_results(fetch_record(site.round_results(listed.number))))


def _check_unchanged(site: Site, chain: Chain) -> None:
    """Raise UncheckableError if the site's chain has grown since `chain` was fetched.

    If it has grown, data fetched after `chain`, such as the leaderboard, may include a newer round.
    """
    again = fetch_read_chain(site)
    if again is not None and len(again.links) != len(chain.links):
        raise UncheckableError(
            "A round changed while the season was read.", fix="Run the command again."
        )


def find_quarantined(chain: Chain) -> set[str]:
    """Return the names of the nodes that are quarantined at the end of the chain."""
    names: set[str] = set()
    for linked in chain.links:
        link = linked.link
        if link.kind == "began":
            names |= set(link.nodes)
        elif link.kind == "quarantined":
            names.add(link.node)
        elif link.kind == "released":
            names.discard(link.node)
    return names
