"""The leaderboard's windows are updated when rounds close."""

from datetime import timedelta

import pytest

from judge.models import Ledger, Season, Standing, Window
from judge.services.oversight import (
    void_round,
)
from judge.services.standings import refresh_standings
from swarm_web.nodes.models import Node
from tests.judge.boards import assert_exact, change_rules, n_by_window
from tests.judge.toys import TASKS, Site


def test_the_leaderboard_is_empty_before_any_round(site: Site) -> None:
    assert not site.refresh()
    assert site.board() == {}


def test_a_closed_round_counts_in_every_window(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrww")
    assert n_by_window(site, "amber") == dict.fromkeys((w.value for w in Window), 4)
    assert_exact(site)


@pytest.mark.slow
def test_the_season_window_sums_all_rounds(site: Site) -> None:
    site.join("amber")
    for letters in ("rrrr", "wwww", "rwww"):
        site.play(amber=letters)
    row = site.board()["amber"]
    assert (row.rounds, row.n, row.correct) == (3, 12, 5)
    assert row.cells == {"chain_sum": [4, 9], "gcd": [1, 3]}
    assert row.score == pytest.approx((4 / 9 + 1 / 3) / 2)


@pytest.mark.slow
def test_the_round_window_shows_only_the_last_closed_round(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrrr")
    site.play(amber="wwww")
    board = site.board("round")
    assert set(board) == {"amber"}
    assert (board["amber"].n, board["amber"].score) == (4, 0)


@pytest.mark.slow
def test_the_recent_window_spans_the_last_k_rounds(site: Site) -> None:
    change_rules(site, recent_rounds=2)
    site.join("amber")
    for letters in ("rrrr", "rrrr", "wwww"):
        site.play(amber=letters)
    row = site.board("recent")["amber"]
    assert (row.rounds, row.score) == (2, 0.5)
    assert_exact(site)


@pytest.mark.slow
def test_a_changed_number_of_recent_rounds_applies_at_the_next_refresh(site: Site) -> None:
    site.join("amber")
    for letters in ("rrrr", "rrrr", "wwww"):
        site.play(amber=letters)
    assert site.board("recent")["amber"].rounds == 3
    change_rules(site, recent_rounds=1)
    assert site.refresh()
    assert site.board("recent")["amber"].rounds == 1
    assert_exact(site)


@pytest.mark.slow
@pytest.mark.parametrize(("window", "days"), [("24h", 1), ("7d", 7)])
def test_rounds_leave_a_window_as_time_passes(site: Site, window: str, days: int) -> None:
    site.join("amber")
    first = site.play(amber="rrrr")
    site.clock.advance(3600)
    site.play(amber="wwww")
    assert first.closed_at is not None
    left = first.closed_at + timedelta(days=days) - site.clock.now
    site.refresh(left.total_seconds() - 1)
    assert site.board(window)["amber"].rounds == 2
    assert site.refresh(1)
    assert (site.board(window)["amber"].rounds, site.board(window)["amber"].score) == (1, 0)
    site.refresh(3600 + 60)
    assert site.board(window) == {}
    assert site.board()["amber"].rounds == 2


def test_a_refresh_without_changes_writes_nothing(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    before = set(Standing.objects.values_list("pk", flat=True))
    assert not site.refresh(60)
    assert set(Standing.objects.values_list("pk", flat=True)) == before


def test_rounds_that_close_between_two_refreshes_all_count(site: Site) -> None:
    site.join("amber", "birch")
    for letters in ("rrrr", "rrww"):
        judge_round = site.open("amber", "birch")
        site.sit(judge_round, "amber")
        site.submit(judge_round, "amber", letters)
        site.end(judge_round)
    site.refresh()
    assert site.board()["amber"].rounds == 2
    assert_exact(site)


@pytest.mark.slow
def test_a_round_that_closes_after_a_newer_one_counts_but_is_not_the_last(site: Site) -> None:
    change_rules(site, scoring_seconds=3600)
    site.join("amber")
    older = site.answer(amber="rrrr")
    site.advance(1)
    site.toy.broken = {"gcd"}
    change_rules(site, tasks=TASKS[:1])
    site.play(amber="wwww")
    assert site.board()["amber"].rounds == 1
    site.toy.broken = set()
    site.grade()
    assert site.advance() == [older]
    site.refresh()
    assert (site.board()["amber"].rounds, site.board("round")["amber"].score) == (2, 0)
    assert_exact(site)


def test_seasons_are_independent(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    other = Season.objects.create(name="Others", tasks=site.season.tasks)
    assert not refresh_standings(other, now=site.clock.now)
    assert not Standing.objects.filter(season=other).exists()


# ---- model and arm


@pytest.mark.slow
def test_model_and_arm_follow_the_newest_round(site: Site) -> None:
    site.join("amber", model="old")
    site.play(amber="rrrr")
    Node.objects.update(model="new", arm="isolated")
    site.play(amber="rrrr")
    row = site.board()["amber"]
    assert (row.model, row.arm) == ("new", "isolated")


@pytest.mark.slow
def test_model_follows_the_newest_of_a_nodes_own_rounds(site: Site) -> None:
    site.join("amber", "birch", model="old")
    site.play(amber="rrrr", birch="rrrr")
    Node.objects.update(model="new")
    # Two rounds close before the next refresh, and amber was in the first one only.
    for name in ("amber", "birch"):
        judge_round = site.open(name)
        site.sit(judge_round, name)
        site.submit(judge_round, name, "rrrr")
        site.end(judge_round)
    site.refresh()
    assert site.board()["amber"].model == "new"
    assert_exact(site)


@pytest.mark.slow
def test_the_model_of_a_void_round_is_ignored(site: Site) -> None:
    site.join("amber", "birch", model="old")
    site.play(amber="rrrr", birch="rrrr")
    Node.objects.update(model="middle")
    site.play(birch="rrrr")
    Node.objects.update(model="new")
    newest = site.play(amber="rrrr", birch="rrrr")
    void_round(newest, reason="wrong mix", actor=None, now=site.clock.now)
    models = {name: row.model for name, row in site.board().items()}
    assert models == {"amber": "old", "birch": "middle"}
    assert_exact(site)


@pytest.mark.slow
def test_a_node_with_only_void_rounds_loses_its_ledger(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    site.join("birch")
    newest = site.play(amber="rrrr", birch="rrrr")
    void_round(newest, reason="wrong mix", actor=None, now=site.clock.now)
    assert set(site.board()) == {"amber"}
    assert [ledger.node.name for ledger in Ledger.objects.all()] == ["amber"]
