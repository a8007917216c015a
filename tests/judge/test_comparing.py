"""A season's claims: updated at planned looks from the scores of the rounds that count."""

from datetime import timedelta

import pytest

from judge.models import CoinBlock, Comparison, Enrolment, Ledger, Season
from judge.services.comparing import compare_season, read_trials, trained_ledgers
from judge.services.inspection import inspect_closed_rounds
from judge.services.seasons import enrol
from tests.judge.toys import Site

ARMS = ["swarm", "isolated", "isolated", "swarm"]


@pytest.fixture
def coin(site: Site) -> Site:
    """A site with two nodes whose arms a coin draws, in a trial of eight rounds."""
    Season.objects.update(assignment=Season.Assignment.COIN, trial_rounds=8)
    site.season.refresh_from_db()
    CoinBlock.objects.create(season=site.season, model="tiny", arms=ARMS, size=4)
    for node in site.join("amber", "birch"):
        enrol(node, site.season, preferred="swarm")
    return site


def play(site: Site, rounds: int) -> None:
    for _ in range(rounds):
        site.play(amber="rrrr", birch="wwww")


def looks(site: Site) -> int:
    inspect_closed_rounds(now=site.clock.now)
    found: int = Comparison.objects.get().claim["look"]
    return found


def add_result(site: Site, *, started_days: float, deviations: float) -> None:
    """Add a season that starts this long after now, with three rounds of birch."""
    season = Season.objects.create(
        name=f"Started {started_days} days later",
        tasks=[],
        started_at=site.clock.now + timedelta(days=started_days),
    )
    Ledger.objects.create(
        season=season,
        node=site.nodes["birch"],
        model="tiny",
        deviations=deviations,
        deviation_rounds=3,
    )


@pytest.mark.slow
def test_a_claim_is_as_of_the_last_planned_look(coin: Site) -> None:
    Season.objects.update(trial_rounds=16)
    coin.season.refresh_from_db()
    play(coin, 1)
    assert looks(coin) == 1
    play(coin, 4)
    # Looks are planned after 4, 6, 8, … rounds. Five rounds have closed.
    assert looks(coin) == 4
    play(coin, 1)
    assert looks(coin) == 6


@pytest.mark.slow
def test_a_trial_has_its_nodes_results_up_to_each_look(coin: Site) -> None:
    play(coin, 4)
    trial = read_trials(coin.season, trained_ledgers(coin.season), looks=[3, 4])["tiny"]
    assert trial.rounds.tolist() == [[3, 3], [4, 4]]
    assert trial.deviations.tolist() == [[0.5, -0.5], [0.5, -0.5]]
    assert trial.noise.tolist() == [0, 0]
    assert trial.swarm.tolist() == [True, False]
    assert [place for _, place in trial.places] == [0, 1]
    assert list(trial.blocks[trial.places[0][0]]) == [True, False, False, True]


@pytest.mark.slow
def test_known_facts_are_the_join_time_and_the_result_in_the_previous_season(
    coin: Site,
) -> None:
    add_result(coin, started_days=-2, deviations=-0.9)
    add_result(coin, started_days=-1, deviations=0.6)
    play(coin, 3)
    (late,) = coin.join("late")
    enrol(late, coin.season, preferred="swarm")
    Enrolment.objects.filter(node=late).update(created_at=coin.clock.now)
    coin.play(amber="rrrr", birch="wwww", late="wwww")
    covariates = read_trials(coin.season, trained_ledgers(coin.season), looks=[4])[
        "tiny"
    ].covariates
    assert covariates[:, 1].tolist() == [0, pytest.approx(0.2), 0]
    assert covariates[2, 0] == 3


def test_seasons_are_ordered_by_their_start_and_not_by_when_they_were_drafted(coin: Site) -> None:
    for started_days, deviations in ((1, 0.3), (-1, 0.6), (-2, -0.9)):
        add_result(coin, started_days=started_days, deviations=deviations)
    play(coin, 1)
    trials = read_trials(coin.season, trained_ledgers(coin.season), looks=[1])
    assert trials["tiny"].covariates[:, 1].tolist() == [0, pytest.approx(0.2)]


@pytest.mark.slow
def test_nodes_with_chosen_arms_are_shuffled_with_each_other(site: Site) -> None:
    site.join("amber", "birch")
    site.join("cedar", model="large", arm="isolated")
    site.play(amber="rrrr", birch="wwww", cedar="rwrw")
    trials = read_trials(site.season, trained_ledgers(site.season), looks=[1])
    assert trials["tiny"].places == [(0, 0), (0, 1)]
    assert trials["tiny"].blocks == {0: [True, True]}
    assert trials["large"].blocks == {0: [False]}


def test_a_season_without_rounds_claims_nothing(coin: Site) -> None:
    Comparison.objects.create(season=coin.season, model="x", claim={}, updated_at=coin.clock.now)
    compare_season(coin.season, now=coin.clock.now)
    assert not Comparison.objects.exists()
