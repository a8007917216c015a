"""The stored stream of a season, and the cost of updating the leaderboard."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from judge.models import Answer, Counted, Round, Score, Window
from judge.selectors.scores import standings_in
from judge.services.oversight import (
    recompute_round,
)
from judge.services.standings import rebuild_standings
from swarm_record.stream import QUESTIONS
from swarm_web.board.leaderboard import read_leaderboard
from tests.judge.boards import assert_exact, change_rules, ranks
from tests.judge.toys import Site

# The most that a round may ask: the first eight such rounds have a column per question.
LARGEST = 256


def fill_stream(site: Site, **letters: str) -> list[Round]:
    """Play rounds until the next one no longer has a column per question."""
    change_rules(site, questions_per_round=LARGEST)
    site.join(*letters)
    return [
        site.play(**{name: letter * LARGEST for name, letter in letters.items()})
        for _ in range(QUESTIONS // LARGEST)
    ]


def recompute_as_wrong(site: Site, judge_round: Round) -> None:
    Answer.objects.filter(question__round=judge_round).update(text="<answer>wrong</answer>")
    recompute_round(judge_round, reason="?", actor=None, now=site.clock.now, verifier=site.verifier)


@pytest.mark.slow
def test_rounds_beyond_the_stream_of_questions_count_by_their_scores(site: Site) -> None:
    fill_stream(site, amber="w", birch="w")
    change_rules(site, questions_per_round=8)
    for _ in range(6):
        site.play(amber="r" * 8, birch="w" * 8)
    assert ranks(site) == {"amber": (1, 2), "birch": (1, 2)}
    for _ in range(26):
        site.hold(amber="r" * 8, birch="w" * 8)
    site.refresh()
    assert ranks(site) == {"amber": (1, 1), "birch": (2, 2)}
    assert_exact(site)


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, -1])
def test_a_rescored_round_changes_ranks_in_both_parts_of_the_stream(site: Site, at: int) -> None:
    rounds = fill_stream(site, amber="w", birch="w")
    rounds += [site.play(amber="r" * LARGEST, birch="r" * LARGEST)]
    before = site.board()["amber"].score
    recompute_as_wrong(site, rounds[at])
    assert (site.board()["amber"].score < before) == (at == -1)
    assert_exact(site)


@pytest.mark.slow
def test_nodes_that_join_after_the_question_columns_are_compared_by_scores(site: Site) -> None:
    fill_stream(site, amber="w")
    site.join("late")
    site.play(amber="w" * LARGEST, late="r" * LARGEST)
    assert ranks(site) == {"amber": (1, 2), "late": (1, 2)}
    assert_exact(site)


# ---- cost


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
def test_a_refresh_reads_no_answers_and_only_scores_of_changed_rounds(
    site: Site,
) -> None:
    site.join("amber")
    *old, _ = (site.play(amber="rrrr") for _ in range(3))
    site.hold(amber="rrrr")
    Score.objects.filter(round__in=old).update(correct=0, cells={"chain_sum": [0, 1]})
    with CaptureQueriesContext(connection) as queries:
        site.refresh()
    assert "judge_answer" not in " ".join(query["sql"] for query in queries)
    assert (site.board()["amber"].n, site.board()["amber"].score) == (16, 1)


def test_rebuilding_reads_no_scores(site: Site) -> None:
    site.join("amber")
    site.play(amber="rrrr")
    with CaptureQueriesContext(connection) as queries:
        rebuild_standings(site.season)
    assert "judge_score" not in " ".join(query["sql"] for query in queries)
    assert_exact(site)


def test_every_round_is_counted_once_per_window(site: Site) -> None:
    site.join("amber")
    judge_round = site.play(amber="rrrr")
    windows = Counted.objects.filter(round=judge_round).values_list("window", flat=True)
    assert sorted(windows) == sorted(window.value for window in Window)
