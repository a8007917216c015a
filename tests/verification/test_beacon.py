"""Verification of rounds that use a public beacon, with an honest and a dishonest operator.

The beacon is a local server; the operator cannot choose its values.
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

# Time between two rounds of these tests.
LATER = timedelta(seconds=100)


@pytest.fixture
def server(settings: Any) -> Iterator[Drand]:
    with running() as server:
        settings.BEACON_URLS = [server.url]
        yield server


@pytest.fixture
def site(judged: JudgedSite, server: Drand, tmp_path: Path) -> JudgedSite:
    """A copy of the site with the beacon enabled."""
    site = judged.copy(tmp_path / "nodes")
    judged.season.public_beacon = True
    judged.season.save(update_fields=["public_beacon"])
    site.now += LATER
    return site


def beacon_of(judge_round: Round) -> Beacon:
    return msgspec.convert(judge_round.rules["beacon"], Beacon)


def announce(site: JudgedSite) -> Round:
    """Schedule a round and notify the nodes."""
    scheduled = site.schedule()
    site.notify_nodes(scheduled)
    return scheduled


def play(site: JudgedSite, scheduled: Round, *, fetch: Fetch = drand.fetch_beacon) -> Round:
    """Publish the beacon's value and play the round that is drawn with it."""
    site.now = max(site.now, beacon_of(scheduled).emitted_at + timedelta(seconds=2))
    assert draw_waiting_rounds(now=site.now, fetch=fetch, verifier=site.verifier) == [scheduled]
    scheduled.refresh_from_db()
    site.now = max(site.now, scheduled.opens_at)
    site.start(scheduled)
    for name, sheet in SHEETS.items():
        site.answer(scheduled, name, sheet)
    return site.close(scheduled)


@pytest.fixture
def verify(site: JudgedSite, check: Check, server: Drand) -> Check:
    """Verify a round as amber's owner would, with the value from the beacon, not the site."""
    folder = site.members["amber"].state.path

    def run(number: int, *, url: str = server.url) -> Result:
        return check("verify-round", str(number), "--beacon-url", url, folder=folder)

    return run


def recommit(judge_round: Round, rules: QuizRules, *, secret: bytes, at: datetime) -> None:
    """Bind an unannounced round to other rules or another secret, in the chain too."""
    ChainLink.objects.filter(kind="scheduled", round=judge_round.number).delete()
    judge_round.rules, judge_round.secret = msgspec.to_builtins(rules), secret
    judge_round.commitment = commit_quiz(rules, secret=secret)
    judge_round.save()
    record_commitment(judge_round, now=at)


# ---- an honest site


def test_honest_round_with_a_beacon_is_confirmed(site: JudgedSite, verify: Check) -> None:
    played = play(site, announce(site))
    result = verify(played.number)
    assert result.exit_code == 0, result.output
    expected = f"✓ beacon       drand's value of its round {beacon_of(played).round} against"
    assert expected in result.output
    assert "this machine saw the commitment before the beacon's value was known" in result.output
    assert "–" not in [line[:1] for line in result.output.splitlines()], result.output


def test_honest_season_with_a_beacon_is_confirmed(site: JudgedSite, check: Check) -> None:
    play(site, announce(site))
    result = check("verify-season", folder=site.members["amber"].state.path)
    assert result.exit_code == 0, result.output


def test_round_is_unchecked_when_no_beacon_server_responds(site: JudgedSite, verify: Check) -> None:
    result = verify(play(site, announce(site)).number, url=NOBODY)
    assert result.exit_code == UNCHECKED, result.output
    assert "? beacon       no server of drand gave round" in result.output
    assert "✓ beacon" not in result.output


def test_earlier_round_without_a_beacon_is_still_confirmed(site: JudgedSite, verify: Check) -> None:
    play(site, announce(site))
    result = verify(3)
    assert result.exit_code == 0, result.output
    assert "– beacon" in result.output


def test_page_and_api_show_the_beacon_value(site: JudgedSite) -> None:
    scheduled = announce(site)
    address = f"/api/v1/rounds/{scheduled.number}"
    named = beacon_of(scheduled)
    before = Client().get(address).json()
    assert before["question_count"] == 4
    assert (before["beacon"]["round"], before["beacon"]["randomness"]) == (named.round, None)
    assert f"round {named.round} of drand" in read(f"/rounds/{scheduled.number}/")
    play(site, scheduled)
    value = value_of(named.round)
    shown = Client().get(address).json()["beacon"]
    assert (shown["randomness"], shown["signature"]) == (value.randomness, value.signature)
    assert value.randomness in read(f"/rounds/{scheduled.number}/")


def read(path: str) -> str:
    return Client().get(path).content.decode()


def test_round_without_a_beacon_value_is_void_and_counted_in_the_season(
    site: JudgedSite, check: Check
) -> None:
    scheduled = announce(site)
    site.now = scheduled.opens_at + BEACON_TIMEOUT
    site.start(scheduled)
    assert "the public beacon gave no value" in read(f"/rounds/{scheduled.number}/")
    assert "the public beacon gave no value" in read("/rounds/")
    play(site, announce(site))
    result = check("verify-season", folder=site.members["amber"].state.path)
    assert result.exit_code == 0, result.output
    assert "1 void before they were answered" in result.output


# ---- a dishonest operator


def test_beacon_value_chosen_by_the_operator_is_detected(site: JudgedSite, verify: Check) -> None:
    """The operator drew the questions with its own value, so the round is consistent in itself."""

    def choose(beacon: Beacon) -> BeaconValue:
        return value_of(beacon.round, by="the operator")

    played = play(site, announce(site), fetch=choose)
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert f"here {value_of(beacon_of(played).round).randomness}" in result.output
    assert "✓ questions" in result.output


def test_beacon_value_replaced_after_the_round_is_detected(site: JudgedSite, verify: Check) -> None:
    played = play(site, announce(site))
    other = value_of(beacon_of(played).round, by="the operator")
    Round.objects.filter(pk=played.pk).update(beacon=msgspec.to_builtins(other))
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert "✗ questions" in result.output


def test_secret_replaced_after_the_announcement_is_detected_by_a_node(
    site: JudgedSite, verify: Check
) -> None:
    scheduled = announce(site)
    rules = msgspec.convert(scheduled.rules, QuizRules)
    recommit(scheduled, rules, secret=bytes(32), at=site.now)
    played = play(site, scheduled)
    result = verify(played.number)
    assert result.exit_code == FAILED, result.output
    assert "✗ noted before" in result.output
    assert "✗ chain" in result.output


def test_commitment_to_an_already_published_beacon_value_is_detected(
    site: JudgedSite, verify: Check
) -> None:
    scheduled = site.schedule()
    known = next_beacon(beacon_of(scheduled).chain, after=site.now - timedelta(seconds=60))
    rules = msgspec.convert(scheduled.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(scheduled, rules, secret=bytes(32), at=site.now)
    result = verify(play(site, scheduled).number)
    assert result.exit_code == FAILED, result.output
    assert "✗ beacon" in result.output
    assert "time of the commitment" in result.output


def test_backdated_commitment_is_reported_as_known_from_the_sites_clock_only(
    site: JudgedSite, verify: Check
) -> None:
    """docs/verification.md documents this limit: only a node that was connected can notice."""
    scheduled = site.schedule()
    known = next_beacon(beacon_of(scheduled).chain, after=site.now - timedelta(seconds=60))
    rules = msgspec.convert(scheduled.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(scheduled, rules, secret=bytes(32), at=site.now - timedelta(seconds=90))
    result = verify(play(site, scheduled).number)
    assert result.exit_code == 0, result.output
    assert "only the site's clock says" in result.output


def test_commitment_dated_before_the_previous_link_is_doubtful(
    site: JudgedSite, verify: Check
) -> None:
    """The previous link, which nodes have recorded, contradicts the time."""
    add_link("released", node="bold", reason="a test", now=site.now)
    scheduled = site.schedule()
    known = next_beacon(beacon_of(scheduled).chain, after=site.now - timedelta(seconds=1))
    rules = msgspec.convert(scheduled.rules | {"beacon": msgspec.to_builtins(known)}, QuizRules)
    recommit(scheduled, rules, secret=bytes(32), at=site.now - timedelta(seconds=40))
    result = verify(play(site, scheduled).number)
    assert result.exit_code == DOUBTFUL, result.output
    assert "the link may be dated back" in result.output
