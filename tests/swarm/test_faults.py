"""Test that a site loses nothing if SIGKILL ends each of its parts during one open round.

The outages are one scenario that runs once; each test checks one aspect of its results.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from judge.engine import lost_time, return_time
from judge.models import Answer, Round, Score, Standing, Window
from node_client.runtime import answering
from swarm_protocol.returning import RETURN_WITHIN_S
from swarm_tasks.cells import summarize_outcomes
from tests.local.launcher import launched_site, skip_wheel_build
from tests.swarm.flock import WRONG
from tests.swarm.scenario import FEW, NODES, OPEN_S, PARTS, QUESTIONS, Scenario, run_scenario
from tests.swarm.sites import operating
from tests.swarm.witness import witnessed

pytestmark = pytest.mark.swarm


@pytest.fixture(scope="module")
def scenario(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Scenario]:
    """Run the scenario: kill every part of a site in one round, then play another round."""
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        # One answer at a time, as a large model would write them.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(answering, "QUESTIONS_AT_ONCE", 1)
        skip_wheel_build(folder / "state")
        site = stack.enter_context(launched_site(folder / "state"))
        stack.enter_context(operating(site, django_db_blocker))
        yield run_scenario(site, stack)


def answers_to(quiz: Round) -> list[Answer]:
    answers = Answer.objects.filter(question__round=quiz).select_related("question", "node")
    return list(answers.order_by("node", "question__position"))


def scores_of(quiz: Round) -> list[Score]:
    return list(Score.objects.filter(round=quiz).select_related("node").order_by("node"))


def phases_of(quiz: Round) -> list[str | None]:
    return [seen.after for seen in witnessed("judge_round") if seen.subject == str(quiz.pk)]


def test_round_closes_by_itself_when_all_questions_are_answered_and_graded(
    scenario: Scenario,
) -> None:
    assert phases_of(scenario.quiz) == ["open", "scoring", "closed"]
    assert scenario.quiz.closed_at is not None
    assert scenario.quiz.closed_at < scenario.quiz.closes_at


def test_stored_answers_are_exactly_the_acknowledged_ones(scenario: Scenario) -> None:
    stored = {
        (answer.node.name, str(answer.question_id)): answer.text
        for quiz in (scenario.quiz, scenario.next_quiz)
        for answer in answers_to(quiz)
    }
    acked = scenario.flock.acked
    assert len(acked) == NODES * QUESTIONS + (NODES - 1) * QUESTIONS + FEW
    assert stored == {place: scenario.flock.sent[place] for place in acked}
    assert not scenario.flock.rejected


def test_every_answer_is_stored_once_and_graded_once(scenario: Scenario) -> None:
    seen = witnessed("judge_answer")
    changes = Counter((one.subject, one.done) for one in seen)
    answers = [str(answer.pk) for answer in answers_to(scenario.quiz)]
    assert len(answers) == NODES * QUESTIONS
    for pk in answers:
        assert (changes[pk, "INSERT"], changes[pk, "UPDATE"], changes[pk, "DELETE"]) == (1, 1, 0)


def test_every_answer_is_graded_correctly(scenario: Scenario) -> None:
    for answer in answers_to(scenario.quiz):
        assert answer.solved == (answer.text != WRONG), answer.question.prompt


def test_scores_match_the_graded_answers(scenario: Scenario) -> None:
    for quiz in (scenario.quiz, scenario.next_quiz):
        datasets = list(quiz.questions.order_by("position").values_list("dataset", flat=True))
        solved = {
            (answer.node_id, answer.question.position): answer.solved for answer in answers_to(quiz)
        }
        scores = scores_of(quiz)
        assert len(scores) == NODES
        for score in scores:
            summary = summarize_outcomes(
                (dataset, bool(solved.get((score.node_id, position))))
                for position, dataset in enumerate(datasets, start=1)
            )
            assert (score.score, score.correct, score.n) == (
                summary.score,
                summary.correct,
                QUESTIONS,
            )
            assert score.cells == {name: list(cell) for name, cell in summary.cells.items()}


def test_scores_are_written_once(scenario: Scenario) -> None:
    written = Counter(seen.done for seen in witnessed("judge_score"))
    assert written == {"INSERT": 2 * NODES}


def test_deadline_moves_by_the_lost_time_and_not_more(scenario: Scenario) -> None:
    opened, ended = (
        seen.place
        for seen in witnessed("judge_round")
        if seen.subject == str(scenario.quiz.pk) and seen.after in ("open", "scoring")
    )
    ticks = [
        (datetime.fromisoformat(seen.before or ""), datetime.fromisoformat(seen.after or ""))
        for seen in witnessed("judge_season")
        if seen.subject == str(scenario.season.pk) and opened < seen.place < ended
    ]
    lost = sum((lost_time(before, now=now) for before, now in ticks), timedelta(0))
    assert len(ticks) > len(PARTS)
    moved = scenario.quiz.closes_at - scenario.quiz.opens_at - timedelta(seconds=OPEN_S)
    # Each outage may also have interrupted the pulse, which adds the time to reconnect.
    way_back = return_time(timedelta(0), within=timedelta(seconds=RETURN_WITHIN_S))
    assert lost <= moved <= sum(scenario.outages, len(PARTS) * way_back)


def test_every_node_has_a_standing_in_every_window(scenario: Scenario) -> None:
    for window in Window:
        standings = Standing.objects.filter(season=scenario.season, window=window)
        assert standings.count() == NODES, window


def test_next_round_opens_and_closes_normally(scenario: Scenario) -> None:
    assert phases_of(scenario.next_quiz) == ["open", "scoring", "closed"]
    reasons = [score.reason for score in scores_of(scenario.next_quiz)]
    assert reasons == [Score.Reason.UNANSWERED] + [Score.Reason.NONE] * (NODES - 1)


@pytest.mark.parametrize("part", PARTS)
def test_killed_part_is_restarted_once_and_reported_on_the_console(
    scenario: Scenario, part: str
) -> None:
    assert scenario.console.count(f"] {part} was killed by SIGKILL") == 1
    assert scenario.console.count(f"] {part} is started again") == 1


def test_outages_are_logged_without_tracebacks(scenario: Scenario) -> None:
    assert "Traceback" not in scenario.console
    assert len(scenario.console.splitlines()) < 300


def test_acknowledged_answers_are_flushed_to_disk(scenario: Scenario) -> None:
    with connection.cursor() as cursor:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("on",), name
