"""A site's chain: what a restored backup explains, and which links a round needs."""

from typing import Any

import pytest

from node_client.commands.verification.chain import (
    Chain,
    check_chain,
    check_fixed,
    read_chain,
    read_histories,
)
from node_client.commands.verification.checks import CheckOutcome
from node_client.storage.heads import RecordedHead
from swarm_record.chain import NOTHING, RecordLink, encode_link, hash_link
from tests.node_client.commands.verification.rounds import NUMBER, Published

BEFORE, RESTORED, LATER = (f"2026-01-0{day}T12:00:00+00:00" for day in (1, 2, 3))
BEGAN = {"kind": "began", "at": BEFORE}
RESTORE = {"kind": "restored", "at": RESTORED}


def chain_of(*links: dict[str, Any]) -> Chain:
    lines: list[bytes] = []
    for number, link in enumerate(links, start=1):
        previous = hash_link(lines[-1]) if lines else NOTHING
        lines.append(encode_link(RecordLink(sequence=number, previous=previous, **link)))
    return read_chain(lines)


def lost_head(sequence: int, *, seen_at: str) -> RecordedHead:
    return RecordedHead("http://site", sequence, "9f" * 32, "key", "signature", seen_at)


def test_chain_whose_first_link_is_invalid_differs_from_a_missing_chain() -> None:
    missing, invalid = check_chain(None, []), check_chain(read_chain([b"not a link"]), [])
    assert (missing.outcome, invalid.outcome) == (CheckOutcome.SKIPPED, CheckOutcome.DIFFERS)


@pytest.mark.parametrize(
    ("seen_at", "outcome"), [(BEFORE, CheckOutcome.DOUBTFUL), (LATER, CheckOutcome.DIFFERS)]
)
def test_restored_backup_explains_only_heads_recorded_before_it(
    seen_at: str, outcome: CheckOutcome
) -> None:
    chain = chain_of(BEGAN, RESTORE, {"kind": "released", "at": LATER})
    assert check_chain(chain, [lost_head(3, seen_at=seen_at)]).outcome is outcome


def test_restore_dated_into_the_future_explains_nothing_after_the_next_link() -> None:
    future = RESTORE | {"at": "9999-12-31T23:59:59+00:00"}
    chain = chain_of(BEGAN, future, {"kind": "released", "at": RESTORED})
    check = check_chain(chain, [lost_head(3, seen_at=LATER)])
    assert check.outcome is CheckOutcome.DIFFERS


def test_head_with_a_negative_number_differs() -> None:
    check = check_chain(chain_of(BEGAN), [lost_head(-9, seen_at=BEFORE)])
    assert check.outcome is CheckOutcome.DIFFERS


def test_recomputed_round_older_than_the_chain_is_compared_with_its_new_results(
    published: Published,
) -> None:
    results = published.record["results_root"] = "5e" * 32
    recomputed = {"kind": "recomputed", "at": LATER, "round": NUMBER, "results": results}
    chain = chain_of(BEGAN | {"round": NUMBER}, recomputed)
    history = read_histories(chain)[NUMBER]
    assert check_fixed(published.round, chain, history).outcome is CheckOutcome.HOLDS
    published.record["results_root"] = "bad0" * 16
    assert check_fixed(published.round, chain, history).outcome is CheckOutcome.DIFFERS
