"""What the ring of answers holds, and what keeping the leaderboard costs."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Answer, Counted, Round, Score, Window
from judge.ring import RING
from judge.selectors import standings_in
from judge.services.oversight import (
    recompute_round,
)
from judge.services.standings import republish_standings
from swarm_web.leaderboard import read_leaderboard
from tests.judge.boards import assert_exact, change_rules, ranks
from tests.judge.toys import Site

# As many as a round may ask: four of them fill the ring.
QUESTIONS = 256


@pytest.mark.slow
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


@pytest.mark.slow
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
    Answer.objects.filter(question__round=judge_round).update(text="<answer>wrong</answer>")
    recompute_round(judge_round, reason="?", actor=None, now=site.clock.now, verifier=site.verifier)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
