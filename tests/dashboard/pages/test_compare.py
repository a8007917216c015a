"""Test the comparison of swarm and isolated nodes: claims, p-values, and missing data."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from judge.models import Comparison, Enrolment, Season
from judge.services.seasons import end_season
from judge.statistics.comparison import ArmsClaim, Missing
from judge.statistics.planning import ScoreSpread
from swarm_web.dashboard.reports.compare import ArmAssignment, describe_missing, describe_verdict
from tests.factories import make_node

BY_COIN, BY_CHOICE = ArmAssignment(coin=12, nodes=12), ArmAssignment(coin=0, nodes=12)


def make_claim(model: str = "tiny", **fields: Any) -> ArmsClaim:
    fields_of_claim: dict[str, Any] = {
        "n_swarm": 6,
        "n_isolated": 6,
        "difference": 0.042,
        "interval": (0.011, 0.073),
        "p_value": 0.006,
        "p_adjusted": 0.012,
        "family": (model,),
        "verdict": "swarm_better",
        "missing": None,
    }
    return ArmsClaim(model=model, **(fields_of_claim | fields))


def make_untested_claim(model: str = "odd") -> ArmsClaim:
    return make_claim(
        model,
        n_swarm=5,
        n_isolated=3,
        interval=None,
        p_value=None,
        p_adjusted=None,
        verdict="too_few",
        missing=Missing(swarm_nodes=0, isolated_nodes=2, rounds=3),
    )


def store(season: Season, *claims: ArmsClaim) -> None:
    for claim in claims:
        Comparison.objects.create(
            season=season,
            model=claim.model,
            claim=msgspec.to_builtins(claim),
            updated_at=timezone.now(),
        )


def enrol(season: Season, *, coin: int, choice: int) -> None:
    for assignment in ["coin"] * coin + ["choice"] * choice:
        node, _ = make_node()
        Enrolment.objects.create(season=season, node=node, arm="swarm", assignment=assignment)


def read(client: Client) -> str:
    return client.get("/compare/").content.decode()


def test_page_without_claims_shows_when_there_will_be_one(season: Season, client: Client) -> None:
    html = read(client)
    assert "Nothing to compare yet" in html
    assert "once 5 of its nodes in each arm have answered 3 rounds" in html


@pytest.mark.parametrize(
    ("publish", "words"),
    [
        (False, "Isolated nodes train alone: they neither share nor receive rollouts."),
        (True, "Isolated nodes share their rollouts but receive none."),
    ],
)
def test_page_explains_isolated_according_to_the_season(
    season: Season, client: Client, publish: bool, words: str
) -> None:
    Season.objects.update(isolated_publish=publish)
    store(season, make_claim())
    assert words in read(client)


def test_claim_is_shown_with_all_its_figures(season: Season, client: Client) -> None:
    enrol(season, coin=12, choice=0)
    store(season, make_claim())
    html = read(client)
    assert "Swarm nodes lead in 1 of 1 models tested" in html
    for figure in ("+4.2", "+1.1 to +7.3", ".012", "Arm assigned by coin flip for 12 of 12 nodes"):
        assert figure in html
    assert "the arm caused the difference in this season" in html


def test_untested_claim_shows_what_is_missing(season: Season, client: Client) -> None:
    store(season, make_untested_claim())
    html = read(client)
    assert "Too few nodes to tell yet" in html
    assert "Not tested yet. Needs 2 more isolated nodes with 3 rounds each." in html


@pytest.mark.parametrize(
    ("look", "words", "next_look"),
    [
        (2, "The first test is after 7 of 200 rounds.", 7),
        (50, "Result after 50 rounds. The next test is after 75 of 200.", 75),
        (
            200,
            "Final: the last test was after 200 rounds; later rounds do not change the result.",
            None,
        ),
    ],
)
def test_page_shows_the_current_look_and_the_next_one(
    season: Season, client: Client, look: int, words: str, next_look: int | None
) -> None:
    store(season, make_claim(look=look))
    assert words in read(client)
    body = client.get("/api/v1/compare").json()
    assert (body["look"], body["next_look"], body["trial_rounds"]) == (look, next_look, 200)
    assert body["final"] is (next_look is None)


def test_ended_season_has_no_next_look(season: Season, client: Client) -> None:
    store(season, make_claim(look=50))
    end_season(season, now=timezone.now())
    assert "the last test was after 50 rounds" in read(client)
    assert client.get("/api/v1/compare").json()["final"] is True


def test_season_that_ended_before_its_first_test_does_not_show_a_test(
    season: Season, client: Client
) -> None:
    store(season, replace(make_untested_claim(), look=2))
    end_season(season, now=timezone.now())
    html = read(client)
    assert "The season ended before the first test, which was planned after 7 rounds." in html
    assert "the last test was" not in html


def test_claim_stored_without_looks_is_shown(season: Season, client: Client) -> None:
    store(season, make_claim())
    stored = Comparison.objects.get()
    for name in ("look", "spread", "unadjusted"):
        del stored.claim[name]
    stored.save()
    assert "+4.2" in read(client)
    assert client.get("/api/v1/compare").json()["look"] == 0


def test_page_shows_the_nodes_required_to_detect_a_difference(
    season: Season, client: Client
) -> None:
    store(season, make_claim(spread=ScoreSpread(nodes=0.05, rounds=0.1)))
    body = client.get("/api/v1/compare").json()["items"][0]
    assert "detecting a difference of 5 points" in read(client)
    assert "takes 18 nodes in each arm over 200 rounds" in body["power_words"]
    assert "The current nodes can detect 9.3 points." in body["power_words"]
    assert body["spread"] == {"nodes": 0.05, "rounds": 0.1}


def test_api_contains_claims_and_assignment(season: Season, client: Client) -> None:
    enrol(season, coin=0, choice=3)
    store(season, make_claim(), make_untested_claim())
    body = client.get("/api/v1/compare").json()
    assert (body["season"], body["tested"]) == ("Autumn", 1)
    assert body["assignment"] == {
        "coin": 0,
        "nodes": 3,
        "random": False,
        "words": "Owners chose their arms, so this cannot show causation.",
    }
    tiny, odd = body["items"]
    assert (tiny["difference"], tiny["interval"]) == (0.042, [0.011, 0.073])
    assert (tiny["p_value"], tiny["p_adjusted"]) == (0.006, 0.012)
    assert (tiny["n_swarm"], tiny["n_isolated"]) == (6, 6)
    assert (odd["verdict"], odd["interval"]) == ("too_few", None)
    assert odd["missing"] == {"swarm_nodes": 0, "isolated_nodes": 2, "rounds": 3}


def test_api_is_empty_before_the_first_season(db: None, client: Client) -> None:
    assert client.get("/api/v1/compare").json()["items"] == []


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        (BY_COIN, "Arm assigned by coin flip for 12 of 12 nodes."),
        (BY_CHOICE, "Owners chose their arms, so this cannot show causation."),
        (
            ArmAssignment(coin=5, nodes=12),
            "Arm assigned by coin flip for 5 of 12 nodes. Owners chose the other arms",
        ),
        (ArmAssignment(coin=0, nodes=0), "No node has an arm yet."),
    ],
)
def test_words_describe_how_arms_were_assigned(assignment: ArmAssignment, words: str) -> None:
    assert words in assignment.words


def test_difference_is_called_causal_only_with_a_coin_flip_for_all_nodes() -> None:
    claim = make_claim()
    assert "caused the difference" in describe_verdict(claim, assignment=BY_COIN)
    for assignment in (BY_CHOICE, ArmAssignment(coin=11, nodes=12)):
        assert "this cannot show causation" in describe_verdict(claim, assignment=assignment)


def test_verdict_not_shown_does_not_claim_equality() -> None:
    words = describe_verdict(make_claim(verdict="not_shown"), assignment=BY_COIN)
    assert "does not prove that there is none" in words


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ((0, 2, 3), "Needs 2 more isolated nodes with 3 rounds each."),
        ((1, 5, 3), "Needs 1 more swarm node and 5 more isolated nodes with 3 rounds each."),
        ((0, 0, 1), "Needs 1 more round with 5 nodes in each arm."),
        ((0, 0, 2), "Needs 2 more rounds with 5 nodes in each arm."),
    ],
)
def test_missing_data_is_described_in_words(missing: tuple[int, int, int], words: str) -> None:
    assert describe_missing(Missing(*missing)) == words


# ---- across seasons


def end_seasons(count: int, *, difference: float, assignment: str = "coin") -> None:
    for number in range(count):
        ended = Season.objects.create(
            name=f"ended {number}", tasks=[], state="ended", assignment=assignment
        )
        store(ended, make_claim(difference=difference + number / 1000))


def test_six_seasons_with_coin_flips_are_tested_together(season: Season, client: Client) -> None:
    end_seasons(6, difference=0.02)
    (body,) = client.get("/api/v1/compare").json()["seasons"]
    assert (body["n_seasons"], body["verdict"], body["missing_seasons"]) == (6, "swarm_better", 0)
    assert body["p_value"] <= 0.05
    assert "swarm nodes score significantly higher" in client.get("/compare/").content.decode()


def test_fewer_seasons_are_counted_but_not_tested(season: Season, client: Client) -> None:
    end_seasons(2, difference=0.02)
    (body,) = client.get("/api/v1/compare").json()["seasons"]
    assert (body["p_value"], body["missing_seasons"]) == (None, 4)
    assert (
        "Needs 4 more seasons to run the test (minimum 6)"
        in client.get("/compare/").content.decode()
    )


def test_seasons_in_which_owners_chose_are_not_counted(season: Season, client: Client) -> None:
    end_seasons(6, difference=0.02, assignment="choice")
    assert client.get("/api/v1/compare").json()["seasons"] == []
