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
from node_client.runtime import exam
from swarm_protocol.returning import RETURN_WITHIN_S
from swarm_tasks.marks import mark
from tests.local.launcher import launched_site, skip_wheel_build
from tests.swarm.flock import WRONG
from tests.swarm.sites import operating
from tests.swarm.story import FEW, NODES, OPEN_S, PARTS, QUESTIONS, Story, tell_story
from tests.swarm.witness import witnessed

pytestmark = pytest.mark.swarm


@pytest.fixture(scope="module")
def story(
    tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[Story]:
    """Run the scenario: kill every part of a site in one round, then play another round."""
    folder = tmp_path_factory.mktemp("faults")
    with ExitStack() as stack:
        # One answer at a time, as a large model would write them.
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(exam, "QUESTIONS_AT_ONCE", 1)
        skip_wheel_build(folder / "state")
        site = stack.enter_context(launched_site(folder / "state"))
        stack.enter_context(operating(site, django_db_blocker))
        yield tell_story(site, stack)


def answers_to(quiz: Round) -> list[Answer]:
    answers = Answer.objects.filter(question__round=quiz).select_related("question", "node")
    return list(answers.order_by("node", "question__position"))


def scores_of(quiz: Round) -> list[Score]:
    return list(Score.objects.filter(round=quiz).select_related("node").order_by("node"))


def phases_of(quiz: Round) -> list[str | None]:
    return [seen.after for seen in witnessed("judge_round") if seen.subject == str(quiz.pk)]


def test_round_closes_by_itself_when_all_questions_are_answered_and_graded(story: Story) -> None:
    assert phases_of(story.quiz) == ["open", "scoring", "closed"]
    assert story.quiz.closed_at is not None
    assert story.quiz.closed_at < story.quiz.closes_at


def test_stored_answers_are_exactly_the_acknowledged_ones(story: Story) -> None:
    stored = {
        (answer.node.name, str(answer.question_id)): answer.text
        for quiz in (story.quiz, story.next_quiz)
        for answer in answers_to(quiz)
    }
    acked = story.flock.acked
    assert len(acked) == NODES * QUESTIONS + (NODES - 1) * QUESTIONS + FEW
    assert stored == {place: story.flock.sent[place] for place in acked}
    assert not story.flock.rejected


def test_every_answer_is_stored_once_and_graded_once(story: Story) -> None:
    seen = witnessed("judge_answer")
    changes = Counter((one.subject, one.done) for one in seen)
    answers = [str(answer.pk) for answer in answers_to(story.quiz)]
    assert len(answers) == NODES * QUESTIONS
    for pk in answers:
        assert (changes[pk, "INSERT"], changes[pk, "UPDATE"], changes[pk, "DELETE"]) == (1, 1, 0)


def test_every_answer_is_graded_correctly(story: Story) -> None:
    for answer in answers_to(story.quiz):
        assert answer.solved == (answer.text != WRONG), answer.question.prompt


def test_scores_match_the_graded_answers(story: Story) -> None:
    for quiz in (story.quiz, story.next_quiz):
        datasets = list(quiz.questions.order_by("position").values_list("dataset", flat=True))
        solved = {
            (answer.node_id, answer.question.position): answer.solved for answer in answers_to(quiz)
        }
        scores = scores_of(quiz)
        assert len(scores) == NODES
        for score in scores:
            marks = mark(
                (dataset, bool(solved.get((score.node_id, position))))
                for position, dataset in enumerate(datasets, start=1)
            )
            assert (score.score, score.correct, score.n) == (marks.score, marks.correct, QUESTIONS)
            assert score.cells == {name: list(cell) for name, cell in marks.cells.items()}


def test_scores_are_written_once(story: Story) -> None:
    written = Counter(seen.done for seen in witnessed("judge_score"))
    assert written == {"INSERT": 2 * NODES}


def test_deadline_moves_by_the_lost_time_and_not_more(story: Story) -> None:
    opened, ended = (
        seen.place
        for seen in witnessed("judge_round")
        if seen.subject == str(story.quiz.pk) and seen.after in ("open", "scoring")
    )
    ticks = [
        (datetime.fromisoformat(seen.before or ""), datetime.fromisoformat(seen.after or ""))
        for seen in witnessed("judge_season")
        if seen.subject == str(story.season.pk) and opened < seen.place < ended
    ]
    lost = sum((lost_time(before, now=now) for before, now in ticks), timedelta(0))
    assert len(ticks) > len(PARTS)
    moved = story.quiz.closes_at - story.quiz.opens_at - timedelta(seconds=OPEN_S)
    # Each outage may also have interrupted the pulse, which adds the time to reconnect.
    way_back = return_time(timedelta(0), within=timedelta(seconds=RETURN_WITHIN_S))
    assert lost <= moved <= sum(story.outages, len(PARTS) * way_back)


def test_every_node_has_a_standing_in_every_window(story: Story) -> None:
    for window in Window:
        standings = Standing.objects.filter(season=story.season, window=window)
        assert standings.count() == NODES, window


def test_next_round_opens_and_closes_normally(story: Story) -> None:
    assert phases_of(story.next_quiz) == ["open", "scoring", "closed"]
    reasons = [score.reason for score in scores_of(story.next_quiz)]
    assert reasons == [Score.Reason.UNANSWERED] + [Score.Reason.NONE] * (NODES - 1)


@pytest.mark.parametrize("part", PARTS)
def test_killed_part_is_restarted_once_and_reported_on_the_console(story: Story, part: str) -> None:
    assert story.console.count(f"] {part} was killed by SIGKILL") == 1
    assert story.console.count(f"] {part} is started again") == 1


def test_outages_are_logged_without_tracebacks(story: Story) -> None:
    assert "Traceback" not in story.console
    assert len(story.console.splitlines()) < 300


def test_acknowledged_answers_are_flushed_to_disk(story: Story) -> None:
    with connection.cursor() as cursor:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("on",), name
