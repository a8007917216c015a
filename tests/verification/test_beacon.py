"""A site whose secrets are mixed with a public beacon: an honest one, and what an operator may do.

The beacon is a server on this machine, whose values the operator cannot choose.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.test import Client
from typer.testing import Result

from judge.engine import BEACON_TIMEOUT
from judge.models import ChainLink, Round
from judge.services.record import add_link, record_commitment
from judge.services.scheduling import Fetch, draw_waiting_rounds
from node_client.commands.problems import DOUBTFUL, FAILED, UNCHECKED
from swarm_tasks.beacon import Beacon, BeaconValue, next_beacon
from swarm_tasks.quiz import QuizRules, commit_quiz
from swarm_web.core import drand
from tests.drand import NOBODY, Drand, running, value_of
from tests.verification.conftest import Check
from tests.verification.honest import SHEETS, JudgedSite

pytestmark = pytest.mark.django_db

# Between one round of these tests and the next.
LATER = timedelta(seconds=100)


@pytest.fixture
def server(settings: Any) -> Iterator[Drand]:
    with running() as server:
        settings.BEACON_URLS = [server.url]
        yield server


@pytest.fixture
def site(judged: JudgedSite, server: Drand, tmp_path: Path) -> JudgedSite:
    """The site, whose operator turned the beacon on; a test of its own may play on."""
    site = judged.copy(tmp_path / "nodes")
    judged.season.public_beacon = True
    judged.season.save(update_fields=["public_beacon"])
    site.now += LATER
    return site


def beacon_of(judge_round: Round) -> Beacon:
    return msgspec.convert(judge_round.rules["beacon"], Beacon)


def announce(site: JudgedSite) -> Round:
    """Schedule a round, and let the nodes hear of it at once."""
    made = site.schedule()
    site.tell(made)
    return made


def play(site: JudgedSite, made: Round, *, fetch: Fetch = drand.fetch_beacon) -> Round:
    """Let the beacon publish its value, and play the round that is drawn with it."""
    site.now = max(site.now, beacon_of(made).emitted_at + timedelta(seconds=2))
    assert draw_waiting_rounds(now=site.now, fetch=fetch, verifier=site.verifier) == [made]
    made.refresh_from_db()
    site.now = max(site.now, made.opens_at)
    site.start(made)
    for name, sheet in SHEETS.items():
        site.answer(made, name, sheet)
    return site.close(made)


@pytest.fixture
def verify(site: JudgedSite, check: Check, server: Drand) -> Check:
    """Check a round as amber's owner would, who asks the beacon and not the site for its value."""
    folder = site.members["amber"].state.path

    def run(number: int, *, url: str = server.url) -> Result:
        return check("verify-round", str(number), "--beacon-url", url, folder=folder)

    return run


def recommit(judge_round: Round, rules: QuizRules, *, secret: bytes, at: datetime) -> None:
    """Bind a round that nobody knows yet to other rules or another secret, in the chain too."""
    ChainLink.objects.filter(kind="scheduled", round=judge_round.number).delete()
    judge_round.rules, judge_round.secret = msgspec.to_builtins(rules), secret
    judge_round.commitment = commit_quiz(rules, secret=secret)
    judge_round.save()
    record_commitment(judge_round, now=at)


# ---- an honest site


def test_an_honest_round_is_confirmed(site: JudgedSite, verify: Check) -> None:
    played = play(site, announce(site))
    result = verify(played.number)
    assert result.exit_code == 0, result.output
    told = f"✓ beacon       round {beacon_of(played).round} of drand with a server of drand"
    assert told in result.output
    assert "this machine saw the commitment before the beacon's value was known" in result.output
    assert "–" not in [line[:1] for line in result.output.splitlines()], result.output


def test_a_season_with_a_beacon_adds_up(site: JudgedSite, check: Check) -> None:
    play(site, announce(site))
    result = check("verify-season", folder=site.members["amber"].state.path)
    assert result.exit_code == 0, result.output


def test_a_round_is_not_confirmed_while_no_server_of_the_beacon_answers(
    site: JudgedSite, verify: Check
) -> None:
    result = verify(play(site, announce(site)).number, url=NOBODY)
    assert result.exit_code == UNCHECKED, result.output
    assert "? beacon       no server of drand gave round" in result.output
    assert "✓ beacon" not in result.output


def test_rounds_without_a_beacon_stay_valid_beside_those_that_have_one(
    site: JudgedSite, verify: Check
) -> None:
    play(site, announce(site))
    result = verify(3)
    assert result.exit_code == 0, result.output
    assert "– beacon" in result.output


def test_the_value_is_shown_on_the_page_and_in_the_api(site: JudgedSite) -> None:
    made = announce(site)
    address = f"/api/v1/rounds/{made.number}"
    named = beacon_of(made)
    before = Client().get(address).json()
    assert before["question_count"] == 4
    assert (before["beacon"]["round"], before["beacon"]["randomness"]) == (named.round, None)
    assert f"round {named.round} of drand" in read(f"/rounds/{made.number}/")
    play(site, made)
    value = value_of(named.round)
    shown = Client().get(address).json()["beacon"]
    assert (shown["randomness"], shown["signature"]) == (value.randomness, value.signature)
    assert value.randomness in read(f"/rounds/{made.number}/")


def read(path: str) -> str:
    return Client().get(path).content.decode()


def test_a_round_that_the_beacon_left_waiting_is_void_and_the_season_says_how_many(
    site: JudgedSite, check: Check
) -> None:
    made = announce(site)
    site.now = made.opens_at + BEACON_TIMEOUT
    site.start(made)
    assert "the public beacon gave no value" in read(f"/rounds/{made.number}/")
    assert "the public beacon gave no value" in read("/rounds/")
    play(site, announce(site))
    result = check("verify-season", folder=site.members["amber"].state.path)
    assert result.exit_code == 0, result.output
    assert "1 void before they were answered" in result.output


# ---- an operator who chooses


def test_a_value_that_the_operator_chose_is_found_out(site: JudgedSite, verify: Check) -> None:
    """It drew the questions with a value of its own, which is consistent in itself."""

    def choose(beacon: Beacon) -> BeaconValue:
        return value_of(beacon.round, by="the operator")

    played = play(site, announce(site), fetch=choose)
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert f"here {value_of(beacon_of(played).round).randomness}" in result.output
    assert "✓ questions" in result.output


def test_a_value_that_was_exchanged_afterwards_is_found_out(
    site: JudgedSite, verify: Check
) -> None:
    played = play(site, announce(site))
    other = value_of(beacon_of(played).round, by="the operator")
    Round.objects.filter(pk=played.pk).update(beacon=msgspec.to_builtins(other))
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert "✗ questions" in result.output


def test_a_secret_that_was_chosen_when_the_value_was_known_is_found_by_who_noted_the_commitment(
    site: JudgedSite, verify: Check
) -> None:
    made = announce(site)
    rules = msgspec.convert(made.rules, QuizRules)
    recommit(made, rules, secret=bytes(32), at=site.now)
    played = play(site, made)
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ noted before" in result.output
    assert "✗ chain" in result.output


def test_a_commitment_to_a_value_that_was_known_already_is_found_out(
    site: JudgedSite, verify: Check
) -> None:
    made = site.schedule()
    known = next_beacon(beacon_of(made).chain, after=site.now - timedelta(seconds=60))
    rules = msgspec.convert(made.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(made, rules, secret=bytes(32), at=site.now)
    result = verify(play(site, made).number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert "time of the commitment" in result.output


def test_a_commitment_with_a_false_time_is_never_said_to_have_been_seen_in_time(
    site: JudgedSite, verify: Check
) -> None:
    """What docs/verification.md says nobody can tell who was not there."""
    made = site.schedule()
    known = next_beacon(beacon_of(made).chain, after=site.now - timedelta(seconds=60))
    rules = msgspec.convert(made.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(made, rules, secret=bytes(32), at=site.now - timedelta(seconds=90))
    result = verify(play(site, made).number)
    assert result.exit_code == 0, result.output
    assert "only the site's clock says" in result.output


def test_a_commitment_with_a_false_time_is_in_doubt_if_the_chain_had_gone_on(
    site: JudgedSite, verify: Check
) -> None:
    """The link before it, which nodes have noted, tells that the time is false."""
    add_link("released", node="bold", reason="a test", now=site.now)
    made = site.schedule()
    known = next_beacon(beacon_of(made).chain, after=site.now - timedelta(seconds=1))
    rules = msgspec.convert(made.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(made, rules, secret=bytes(32), at=site.now - timedelta(seconds=40))
    result = verify(play(site, made).number)
    assert result.exit_code == DOUBTFUL, result.output
    assert "the link may be dated back" in result.output
