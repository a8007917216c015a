"""The leaderboard follows the rounds that close, window by window."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Counted, Ledger, Round, Score, Season, Standing, Window
from judge.ring import RING
from judge.selectors import standings_in
from judge.services.oversight import (
    quarantine_node,
    recompute_round,
    release_node,
    void_round,
)
from judge.services.standings import refresh_standings, republish_standings
from swarm_web.leaderboard import read_leaderboard, read_line
from swarm_web.nodes.models import Node
from tests.judge.naive import kept_boards, naive_boards
from tests.judge.toys import TASKS, Site

# As many as a round may ask: four of them fill the ring.
QUESTIONS = 256


def assert_exact(site: Site) -> None:
    """Check that every window is what the scores and answers come to."""
    assert kept_boards(site.season) == naive_boards(site.season, now=site.clock.now)


def change_rules(site: Site, **rules: object) -> None:
    Season.objects.filter(pk=site.season.pk).update(**rules)
    site.season.refresh_from_db()


def ranks(site: Site, window: str = "season") -> dict[str, tuple[int | None, int | None]]:
    return {name: (row.rank_low, row.rank_high) for name, row in site.board(window).items()}


def n_by_window(site: Site, name: str) -> dict[str, int]:
    return {w.value: row.n for w in Window if (row := site.board(w.value).get(name)) is not None}


# ---- windows


def test_before_any_round_the_leaderboard_is_empty(site: Site) -> None:
    assert not site.refresh()
    assert site.board() == {}


def test_a_closed_round_counts_in_every_window(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrww")
    assert n_by_window(site, "amber") == dict.fromkeys((w.value for w in Window), 4)
    assert_exact(site)


def test_the_season_adds_up_all_rounds(site: Site) -> None:
    site.join("amber")
    for letters in ("rrrr", "wwww", "rwww"):
        site.play(amber=letters)
    row = site.board()["amber"]
    assert (row.rounds, row.n, row.correct) == (3, 12, 5)
    assert row.cells == {"chain_sum": [4, 9], "gcd": [1, 3]}
    assert row.score == pytest.approx((4 / 9 + 1 / 3) / 2)


def test_the_round_window_shows_the_last_closed_round_alone(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrrr")
    site.play(amber="wwww")
    board = site.board("round")
    assert set(board) == {"amber"}
    assert (board["amber"].n, board["amber"].score) == (4, 0)


def test_the_recent_window_spans_the_last_k_rounds(site: Site) -> None:
    change_rules(site, recent_rounds=2)
    site.join("amber")
    for letters in ("rrrr", "rrrr", "wwww"):
        site.play(amber=letters)
    row = site.board("recent")["amber"]
    assert (row.rounds, row.score) == (2, 0.5)
    assert_exact(site)


def test_another_k_counts_at_the_next_refresh(site: Site) -> None:
    site.join("amber")
    for letters in ("rrrr", "rrrr", "wwww"):
        site.play(amber=letters)
    assert site.board("recent")["amber"].rounds == 3
    change_rules(site, recent_rounds=1)
    assert site.refresh()
    assert site.board("recent")["amber"].rounds == 1
    assert_exact(site)


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


def test_a_refresh_without_news_changes_nothing(site: Site) -> None:
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
        site.hand_in(judge_round, "amber", letters)
        site.end(judge_round)
    site.refresh()
    assert site.board()["amber"].rounds == 2
    assert_exact(site)


def test_a_round_that_closes_after_a_younger_one_counts_and_is_not_the_last(site: Site) -> None:
    change_rules(site, scoring_seconds=3600)
    site.join("amber")
    older = site.open("amber")
    site.sit(older, "amber")
    site.hand_in(older, "amber", "rrrr")
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


def test_seasons_are_apart(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    other = Season.objects.create(name="Others", tasks=site.season.tasks)
    assert not refresh_standings(other, now=site.clock.now)
    assert not Standing.objects.filter(season=other).exists()


# ---- who a node is


def test_model_and_arm_follow_the_newest_round(site: Site) -> None:
    site.join("amber", model="old")
    site.play(amber="rrrr")
    Node.objects.update(model="new", arm="isolated")
    site.play(amber="rrrr")
    row = site.board()["amber"]
    assert (row.model, row.arm) == ("new", "isolated")


def test_model_follows_the_newest_of_a_nodes_own_rounds(site: Site) -> None:
    site.join("amber", "birch", model="old")
    site.play(amber="rrrr", birch="rrrr")
    Node.objects.update(model="new")
    # Two rounds close before the next refresh, and amber was in the first one only.
    for name in ("amber", "birch"):
        judge_round = site.open(name)
        site.sit(judge_round, name)
        site.hand_in(judge_round, name, "rrrr")
        site.end(judge_round)
    site.refresh()
    assert site.board()["amber"].model == "new"
    assert_exact(site)


def test_a_void_round_leaves_no_trace_of_its_model(site: Site) -> None:
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


def test_a_node_of_which_only_void_rounds_are_left_is_not_kept(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr")
    newest = site.play(amber="rrrr", birch="rrrr")
    void_round(newest, reason="wrong mix", actor=None, now=site.clock.now)
    assert set(site.board()) == {"amber"}
    assert [ledger.node.name for ledger in Ledger.objects.all()] == ["amber"]


# ---- ranks


def test_nodes_that_cannot_be_told_apart_share_ranks(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrrw")
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}


def test_a_node_that_is_clearly_better_ranks_first(site: Site) -> None:
    site.join("amber", "birch")
    for _ in range(3):
        site.play(amber="rrrr", birch="wwww")
    assert ranks(site) == {"amber": (1, 1), "birch": (2, 2)}
    assert ranks(site, "round") == {"amber": (1, 2), "birch": (1, 2)}
    assert_exact(site)


def test_questions_that_nobody_could_grade_tell_nobody_apart(site: Site) -> None:
    site.join("amber", "birch")
    change_rules(site, scoring_seconds=5)
    for _ in range(3):
        site.toy.broken = {"chain_sum"}
        judge_round = site.open("amber", "birch")
        for name, letters in (("amber", "rrrr"), ("birch", "wwww")):
            site.sit(judge_round, name)
            site.hand_in(judge_round, name, letters)
        site.end(judge_round)
        site.advance(5)
    site.refresh()
    assert {r.n for r in site.board().values()} == {3}
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}
    assert_exact(site)


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


def test_in_the_round_window_as_many_questions_as_a_round_has_are_enough(site: Site) -> None:
    change_rules(site, minimum_questions=100)
    site.join("amber")
    site.play(amber="rrrr")
    assert (site.board("round")["amber"].remark, site.board()["amber"].remark) == ("", "too_few")


def test_an_untrained_model_is_shown_and_not_ranked(site: Site) -> None:
    site.join("amber")
    site.join("bare", arm="base")
    for _ in range(3):
        site.play(amber="wwww", bare="rrrr")
    assert site.board()["bare"].remark == "base"
    assert ranks(site) == {"amber": (1, 1), "bare": (None, None)}


def test_absent_nodes_have_no_line(site: Site) -> None:
    site.join("amber", "idle")
    judge_round = site.open("amber", "idle")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    site.refresh()
    assert Score.objects.filter(node=site.nodes["idle"], status="absent").exists()
    assert set(site.board()) == {"amber"}


# ---- quarantine


def test_quarantine_hides_a_node_and_release_returns_it(site: Site) -> None:
    site.join("amber", "birch")
    for _ in range(3):
        site.play(amber="rrrr", birch="wwww")
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="copies", actor=None, now=site.clock.now)
    hidden = read_leaderboard(site.season, window="season", now=site.clock.now)
    assert ([row.node for row in hidden.rows], hidden.quarantined) == (["birch"], 1)
    assert hidden.rows[0].rank == (1, 1)
    assert_exact(site)
    release_node(amber, reason="was wrong", actor=None, now=site.clock.now)
    shown = read_leaderboard(site.season, window="season", now=site.clock.now)
    assert [(row.node, row.rank) for row in shown.rows] == [("amber", (1, 1)), ("birch", (2, 2))]


def test_a_quarantined_node_still_sees_its_own_line(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    amber = site.nodes["amber"]
    quarantine_node(amber, reason="copies", actor=None, now=site.clock.now)
    line = read_line(amber, season=site.season, window="season", now=site.clock.now)
    assert line is not None
    assert (line.remark, line.rank, line.score) == ("quarantined", None, 1)


def test_a_quarantined_node_is_judged_as_ever(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    quarantine_node(site.nodes["amber"], reason="copies", actor=None, now=site.clock.now)
    site.play(amber="wwww")
    assert (site.board()["amber"].n, site.board()["amber"].remark) == (8, "quarantined")
    assert_exact(site)


# ---- the ring of answers


def test_only_the_seasons_last_questions_tell_nodes_apart(site: Site) -> None:
    change_rules(site, questions_per_round=QUESTIONS)
    site.join("amber", "birch")
    site.play(amber="r" * QUESTIONS, birch="w" * QUESTIONS)
    assert ranks(site)["amber"] == (1, 1)
    for _ in range(RING // QUESTIONS):
        site.play(amber="w" * QUESTIONS, birch="w" * QUESTIONS)
    assert site.board()["amber"].score > site.board()["birch"].score
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}
    assert_exact(site)


def test_what_a_node_answered_long_ago_does_not_pass_for_newer_answers(site: Site) -> None:
    change_rules(site, questions_per_round=QUESTIONS, recent_rounds=1)
    site.join("away", "here", "there")
    site.play(away="r" * QUESTIONS, here="w" * QUESTIONS)
    for _ in range(RING // QUESTIONS):
        site.play(here="w" * QUESTIONS, there="w" * QUESTIONS)
    site.play(away="w" + "-" * (QUESTIONS - 1), here="w" * QUESTIONS)
    assert ranks(site)["away"] == (1, 3)
    assert_exact(site)


def recompute_as_wrong(site: Site, judge_round: Round) -> None:
    for question in judge_round.questions.all():
        question.answers.update(text="<answer>wrong</answer>")
    recompute_round(judge_round, reason="?", actor=None, now=site.clock.now, verifier=site.verifier)


def test_a_round_that_is_scored_anew_changes_what_is_left_of_it_in_the_ring(site: Site) -> None:
    """The 900 questions after it have left 124 of its 256."""
    change_rules(site, questions_per_round=QUESTIONS)
    site.join("amber", "birch")
    judge_round = site.play(amber="r" * QUESTIONS, birch="w" * QUESTIONS)
    change_rules(site, questions_per_round=225)
    for _ in range(4):
        site.play(amber="w" * 225, birch="w" * 225)
    assert ranks(site)["amber"] == (1, 1)
    recompute_as_wrong(site, judge_round)
    assert ranks(site)["amber"] == (1, 2)
    assert_exact(site)


def test_a_round_that_is_scored_anew_changes_nothing_that_took_its_place_in_the_ring(
    site: Site,
) -> None:
    """The last 132 of the 900 questions after it took the places of its first ones."""
    change_rules(site, questions_per_round=QUESTIONS)
    site.join("amber", "birch")
    judge_round = site.play(amber="w" * QUESTIONS, birch="w" * QUESTIONS)
    change_rules(site, questions_per_round=225)
    for _ in range(3):
        site.play(amber="w" * 225, birch="w" * 225)
    site.play(amber="w" * 93 + "r" * 132, birch="w" * 225)
    recompute_as_wrong(site, judge_round)
    assert ranks(site)["amber"] == (1, 1)
    assert_exact(site)


# ---- what it costs


def test_reading_standings_runs_no_query_on_answers_or_scores(site: Site) -> None:
    site.join("amber", "birch")
    site.play(amber="rrrr", birch="rrww")
    with CaptureQueriesContext(connection) as queries:
        list(standings_in(site.season, "season"))
        read_leaderboard(site.season, window="24h", now=site.clock.now)
    sql = " ".join(query["sql"] for query in queries)
    assert "judge_standing" in sql
    assert "judge_answer" not in sql
    assert "judge_score" not in sql


def test_a_refresh_reads_no_answers_and_no_scores_but_of_rounds_that_come_or_go(
    site: Site,
) -> None:
    site.join("amber")
    *old, _ = (site.play(amber="rrrr") for _ in range(3))
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    site.hand_in(judge_round, "amber", "rrrr")
    site.end(judge_round)
    Score.objects.filter(round__in=old).update(correct=0, cells={"chain_sum": [0, 1]})
    with CaptureQueriesContext(connection) as queries:
        site.refresh()
    assert "judge_answer" not in " ".join(query["sql"] for query in queries)
    assert (site.board()["amber"].n, site.board()["amber"].score) == (16, 1)


def test_republishing_reads_no_scores(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    with CaptureQueriesContext(connection) as queries:
        republish_standings(site.season)
    assert "judge_score" not in " ".join(query["sql"] for query in queries)
    assert_exact(site)


def test_every_round_is_counted_once_a_window(site: Site) -> None:
    site.join("amber")
    judge_round = site.play(amber="rrrr")
    windows = Counted.objects.filter(round=judge_round).values_list("window", flat=True)
    assert sorted(windows) == sorted(window.value for window in Window)
