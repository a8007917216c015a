"""The leaderboard's ranks, and which nodes have none."""

import pytest

from judge.models import Score
from judge.services.oversight import (
    quarantine_node,
    release_node,
)
from swarm_web.board.leaderboard import read_leaderboard, read_row
from tests.judge.boards import assert_exact, change_rules, ranks
from tests.judge.toys import Site


def test_nodes_that_do_not_differ_significantly_share_ranks(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrrw")
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}


@pytest.mark.slow
def test_a_node_that_is_clearly_better_ranks_first(site: Site) -> None:
    site.join("amber", "birch")
    for _ in range(8):
        site.hold(amber="rrrr", birch="wwww")
    site.refresh()
    assert ranks(site) == {"amber": (1, 1), "birch": (2, 2)}
    assert_exact(site)


@pytest.mark.slow
def test_only_the_season_window_has_ranks(site: Site) -> None:
    site.join("amber", "birch")
    for _ in range(6):
        site.hold(amber="rrrr", birch="wwww")
    site.refresh()
    for window in ("round", "recent", "24h", "7d"):
        assert ranks(site, window) == {"amber": (None, None), "birch": (None, None)}
        assert [row.place for row in site.board(window).values()] == [1, 2]


@pytest.mark.slow
def test_ungraded_questions_do_not_affect_ranks(site: Site) -> None:
    site.join("amber", "birch")
    change_rules(site, scoring_seconds=5)
    for _ in range(3):
        site.toy.broken = {"chain_sum"}
        judge_round = site.open("amber", "birch")
        for name, letters in (("amber", "rrrr"), ("birch", "wwww")):
            site.sit(judge_round, name)
            site.submit(judge_round, name, letters)
        site.end(judge_round)
        site.advance(5)
    site.refresh()
    assert {r.n for r in site.board().values()} == {3}
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}
    assert_exact(site)


@pytest.mark.slow
def test_a_node_with_too_few_questions_is_shown_and_not_ranked(site: Site) -> None:
    change_rules(site, minimum_questions=8)
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrrr")
    assert {row.remark for row in site.board().values()} == {"too_few"}
    assert site.board()["amber"].rank_low is None
    site.play(amber="rrrr")
    assert {name: row.remark for name, row in site.board().items()} == {
        "amber": "",
        "birch": "too_few",
    }
    assert site.board()["amber"].rank_high == 1


def test_the_questions_of_one_round_are_enough_in_the_round_window(site: Site) -> None:
    change_rules(site, minimum_questions=100)
    site.join("amber")
    site.play(amber="rrrr")
    assert (site.board("round")["amber"].remark, site.board()["amber"].remark) == ("", "too_few")


@pytest.mark.slow
def test_an_untrained_model_is_shown_and_not_ranked(site: Site) -> None:
    site.join("amber")
    site.join("bare", arm="base")
    for _ in range(3):
        site.hold(amber="wwww", bare="rrrr")
    site.refresh()
    assert site.board()["bare"].remark == "base"
    assert ranks(site) == {"amber": (1, 1), "bare": (None, None)}


def test_absent_nodes_have_no_standing(site: Site) -> None:
    site.join("amber", "idle")
    site.hold("idle", amber="rrrr")
    site.refresh()
    assert Score.objects.filter(node=site.nodes["idle"], status="absent").exists()
    assert set(site.board()) == {"amber"}


# ---- attendance


def miss_one_of_two(site: Site, *, minimum: int) -> None:
    """Play two rounds, of which birch misses one, in a season with a minimum attendance."""
    change_rules(site, minimum_attendance=minimum)
    site.join("amber", "birch")
    site.hold(amber="rrrr", birch="rrrr")
    site.hold("birch", amber="----")
    site.refresh()


@pytest.mark.slow
def test_rounds_that_a_node_was_invited_to_and_missed_are_counted(site: Site) -> None:
    miss_one_of_two(site, minimum=90)
    board = site.board()
    assert (board["amber"].rounds, board["amber"].missed) == (2, 0)
    assert (board["birch"].rounds, board["birch"].missed) == (1, 1)
    assert_exact(site)


@pytest.mark.parametrize(("minimum", "remark"), [(0, ""), (50, ""), (51, "often_absent")])
def test_a_node_that_misses_too_many_rounds_is_not_ranked(
    site: Site, minimum: int, remark: str
) -> None:
    miss_one_of_two(site, minimum=minimum)
    assert site.board()["birch"].remark == remark
    assert (site.board()["birch"].rank_low is None) == bool(remark)
    assert_exact(site)


def test_windows_without_ranks_require_no_attendance(site: Site) -> None:
    miss_one_of_two(site, minimum=100)
    assert {row.remark for row in site.board("recent").values()} == {""}


@pytest.mark.slow
def test_an_owner_gains_no_rank_by_skipping_bad_rounds(site: Site) -> None:
    change_rules(site, minimum_attendance=0)
    site.join("scout", "chooser", "rival")
    site.own("vera", "scout", "chooser")
    for _ in range(8):
        site.hold(scout="wwww", chooser="rrrr", rival="wwww")
        site.hold("chooser", scout="----", rival="rrrr")
    site.refresh()
    assert ranks(site)["chooser"][0] == ranks(site)["rival"][0]
    assert_exact(site)


# ---- quarantine


@pytest.mark.slow
def test_quarantine_hides_a_node_and_release_returns_it(site: Site) -> None:
    site.join("amber", "birch")
    for _ in range(8):
        site.hold(amber="rrrr", birch="wwww")
    site.refresh()
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="copies", actor=None, now=site.clock.now)
    hidden = read_leaderboard(site.season, window="season", now=site.clock.now)
    assert ([row.node for row in hidden.rows], hidden.quarantined) == (["birch"], 1)
    assert hidden.rows[0].rank == (1, 1)
    assert_exact(site)
    release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    shown = read_leaderboard(site.season, window="season", now=site.clock.now)
    assert [(row.node, row.rank) for row in shown.rows] == [("amber", (1, 1)), ("birch", (2, 2))]


def test_a_quarantined_node_still_sees_its_own_standing(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="copies", actor=None, now=site.clock.now)
    line = read_row(amber, season=site.season, window="season", now=site.clock.now)
    assert line is not None
    assert (line.remark, line.rank, line.score) == ("quarantined", None, 1)


@pytest.mark.slow
def test_a_quarantined_node_is_still_judged(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    quarantine_node(site.nodes["amber"], reason="copies", actor=None, now=site.clock.now)
    site.play(amber="wwww")
    assert (site.board()["amber"].n, site.board()["amber"].remark) == (8, "quarantined")
    assert_exact(site)
