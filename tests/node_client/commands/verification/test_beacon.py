"""A round's beacon: its value, its time, and the servers that publish it."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec
import pytest

from node_client.commands.verification.audit import audit_round
from node_client.commands.verification.beacon import check_beacon, fetch_value
from node_client.commands.verification.checks import CheckOutcome, RoundCheck
from node_client.errors import UncheckableError
from node_client.storage.commitments import RecordedCommitment
from swarm_record.chain import RecordLink
from swarm_tasks.beacon import MAX_VALUE_BYTES, QUICKNET, Beacon, BeaconValue
from swarm_tasks.quiz import commit_quiz, draw_quiz, with_beacon
from swarm_tasks.verifier import Verifier
from tests.drand import NOBODY, Drand, honest, running, value_of
from tests.node_client.commands.verification.rounds import NUMBER, RULES, SECRET, Published

BEACON = Beacon(QUICKNET, 30_000_000)
VALUE = value_of(BEACON.round)
EMITTED = BEACON.emitted_at
COMMITMENT = commit_quiz(with_beacon(RULES, BEACON), secret=SECRET)


@pytest.fixture
def bound(published: Published) -> Published:
    """Return a round whose rules name a beacon; its questions are not drawn again."""
    rules = with_beacon(RULES, BEACON)
    published.record |= {
        "rules": msgspec.to_builtins(rules),
        "commitment": COMMITMENT,
        "beacon": {**msgspec.to_builtins(VALUE), "chain": QUICKNET},
    }
    return published


def scheduled(*, before: float = 30) -> RecordLink:
    at = EMITTED - timedelta(seconds=before)
    return RecordLink(
        sequence=7,
        previous="00" * 32,
        at=at.isoformat(),
        kind="scheduled",
        round=NUMBER,
        commitment=COMMITMENT,
    )


SCHEDULED = scheduled()


def recorded(*, before: float, commitment: str = COMMITMENT) -> RecordedCommitment:
    at = EMITTED - timedelta(seconds=before)
    return RecordedCommitment("http://site", NUMBER, commitment, at.isoformat(timespec="seconds"))


def check(
    bound: Published,
    *,
    fetched: BeaconValue | None = VALUE,
    link: RecordLink | None = SCHEDULED,
    before: Sequence[RecordLink] = (),
    note: RecordedCommitment | None = None,
) -> RoundCheck:
    return check_beacon(bound.round, fetched=fetched, scheduled=link, before=before, recorded=note)


# ---- the check


def test_beacon_value_after_the_commitment_passes(bound: Published) -> None:
    checked = check(bound)
    assert checked.outcome is CheckOutcome.HOLDS
    assert "only the site's clock says" in checked.compared


@pytest.mark.parametrize(
    ("note", "known"),
    [
        (recorded(before=20), True),
        (recorded(before=0), False),
        (recorded(before=-20), False),
        (recorded(before=20, commitment="c0" * 32), False),
    ],
)
def test_commitment_noted_in_advance_shows_that_it_came_first(
    bound: Published, note: RecordedCommitment, known: bool
) -> None:
    checked = check(bound, note=note)
    assert checked.outcome is CheckOutcome.HOLDS
    assert ("this machine saw the commitment before" in checked.compared) is known


def test_round_without_a_beacon_is_skipped(published: Published) -> None:
    checked = check(published)
    assert checked.outcome is CheckOutcome.SKIPPED
    assert "may have chosen the secret" in checked.compared


def test_value_that_differs_from_that_of_the_server_is_detected(bound: Published) -> None:
    checked = check(bound, fetched=value_of(BEACON.round, by="drand"))
    assert checked.outcome is CheckOutcome.DIFFERS
    [difference] = checked.differences.first
    assert (difference.where, difference.published) == ("value of drand", VALUE.randomness)


def test_randomness_that_is_not_the_hash_of_the_signature_is_detected(bound: Published) -> None:
    bound.record["beacon"]["randomness"] = "ab" * 32
    assert check(bound, fetched=None).outcome is CheckOutcome.DIFFERS


@pytest.mark.parametrize("wrong_value", [None, msgspec.to_builtins(value_of(BEACON.round + 1))])
def test_missing_value_or_value_of_another_round_is_detected(
    bound: Published, wrong_value: object
) -> None:
    bound.record["beacon"] = wrong_value
    assert check(bound).outcome is CheckOutcome.DIFFERS


def test_value_is_not_confirmed_without_a_server(bound: Published) -> None:
    checked = check(bound, fetched=None)
    assert checked.outcome is CheckOutcome.UNKNOWN
    assert "--beacon-url" in checked.compared


@pytest.mark.parametrize("before", [29, 0, -1, -3600])
def test_commitment_less_than_half_a_minute_before_the_value_is_detected(
    bound: Published, before: float
) -> None:
    checked = check(bound, link=scheduled(before=before))
    assert checked.outcome is CheckOutcome.DIFFERS
    assert checked.differences.first[0].where == "time of the commitment"


@pytest.mark.parametrize(
    ("before", "outcome"),
    [(14, CheckOutcome.DOUBTFUL), (16, CheckOutcome.HOLDS), (90, CheckOutcome.HOLDS)],
)
def test_commitment_after_a_later_link_may_be_backdated(
    bound: Published, before: float, outcome: CheckOutcome
) -> None:
    """Workers' clocks may differ slightly."""
    links = [scheduled(before=600), scheduled(before=before), scheduled(before=500)]
    checked = check(bound, link=scheduled(before=30), before=links)
    assert checked.outcome is outcome
    assert ("dated back" in checked.compared) is (outcome is CheckOutcome.DOUBTFUL)


@pytest.mark.parametrize("end", ["9999-12-31T23:59:59+00:00", "9999-12-31T23:59:59-14:00"])
def test_commitment_dated_to_the_end_of_time_is_detected(bound: Published, end: str) -> None:
    link = msgspec.structs.replace(scheduled(), at=end)
    assert check(bound, link=link).outcome is CheckOutcome.DIFFERS


@pytest.mark.parametrize(
    "link",
    [
        None,
        msgspec.structs.replace(scheduled(), at="yesterday"),
        msgspec.structs.replace(scheduled(), at=datetime(2026, 1, 1).isoformat()),
    ],
)
def test_commitment_without_a_known_time_is_doubtful(
    bound: Published, link: RecordLink | None
) -> None:
    assert check(bound, link=link).outcome is CheckOutcome.DOUBTFUL


# ---- the questions


def draw_again(bound: Published, verifier: Verifier) -> RoundCheck:
    checks = audit_round(
        bound.round, number=NUMBER, recorded=None, asked=[], answers=[], verifier=verifier
    )
    return next(each for each in checks if each.name == "questions")


def ask(bound: Published, value: BeaconValue, verifier: Verifier) -> None:
    """Publish the questions that result from a value."""
    rules = with_beacon(RULES, BEACON)
    drawn = draw_quiz(rules, secret=SECRET, seen=lambda _: (), verifier=verifier, beacon=value)
    for question, task in zip(bound.record["questions"], drawn, strict=True):
        question.update(prompt=task.question, spec=msgspec.to_builtins(task.spec))


def test_questions_are_drawn_again_with_the_value(bound: Published, verifier: Verifier) -> None:
    ask(bound, VALUE, verifier)
    assert draw_again(bound, verifier).outcome is CheckOutcome.HOLDS


def test_questions_drawn_with_another_value_are_detected(
    bound: Published, verifier: Verifier
) -> None:
    ask(bound, value_of(BEACON.round, by="the operator"), verifier)
    assert draw_again(bound, verifier).outcome is CheckOutcome.DIFFERS


def test_questions_are_not_drawn_again_without_the_value(
    bound: Published, verifier: Verifier
) -> None:
    bound.record["beacon"] = None
    assert draw_again(bound, verifier).outcome is CheckOutcome.UNKNOWN


@pytest.mark.parametrize(
    "change",
    [
        {"format": "murmuration-quiz-3"},
        {"beacon": {"chain": "ab" * 32, "round": 1}},
    ],
)
def test_rules_with_an_unknown_beacon_require_another_client(
    bound: Published, change: dict[str, object]
) -> None:
    bound.record["rules"] |= change
    with pytest.raises(UncheckableError, match="this client supports"):
        _ = bound.round


# ---- the servers


@pytest.fixture
def server() -> Iterator[Drand]:
    with running() as server:
        yield server


def test_first_server_that_responds_is_used(server: Drand) -> None:
    with running(lambda number: b"<html>") as broken:
        urls = [NOBODY, "no address", broken.url, server.url]
        assert fetch_value(BEACON, urls=urls) == VALUE


@pytest.mark.parametrize("urls", [[], [NOBODY], [NOBODY, NOBODY]])
def test_value_is_none_without_a_server(urls: list[str]) -> None:
    assert fetch_value(BEACON, urls=urls) is None


def test_response_with_another_round_or_oversized_gives_no_value(server: Drand) -> None:
    server.answer = lambda number: honest(number - 1)
    assert fetch_value(BEACON, urls=[server.url]) is None
    server.answer = lambda number: b" " * (MAX_VALUE_BYTES + 1) + honest(number)
    assert fetch_value(BEACON, urls=[server.url]) is None
