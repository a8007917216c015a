"""Fourteen ways in which an operator may change results afterwards, and how each is detected.

Manipulations of answers also recompute the scores, as a careful operator would.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from judge.models import Answer, ChainLink, Question, Round, Score, Season, Standing
from judge.services import scores
from judge.services.record import record_answers, record_commitment, record_results
from judge.services.scores import write_scores
from node_client.commands.problems import DOUBTFUL, FAILED
from swarm_tasks.quiz import QuizRules, commit_quiz, draw_quiz
from tests.verification.conftest import Check
from tests.verification.honest import JudgedSite

pytestmark = pytest.mark.django_db

Manipulate = Callable[[Round, JudgedSite], object]


def last_round() -> Round:
    return Round.objects.select_related("season").latest("number")


def answers_of(judge_round: Round, name: str) -> list[Answer]:
    found = Answer.objects.filter(question__round=judge_round, node__name=name)
    return list(found.order_by("question__position").select_related("question"))


def change(answer: Answer, **fields: object) -> None:
    Answer.objects.filter(pk=answer.pk).update(**fields)


def turn_right_into_timeout(judge_round: Round, _site: JudgedSite) -> None:
    change(answers_of(judge_round, "amber")[0], verdict="timeout", score=0.0, solved=False)
    write_scores(judge_round)


def leave_wrong_ungraded(judge_round: Round, _site: JudgedSite) -> None:
    change(answers_of(judge_round, "amber")[3], verdict="", score=None, solved=None)
    write_scores(judge_round)


def delete_right_answer(judge_round: Round, _site: JudgedSite) -> None:
    answers_of(judge_round, "amber")[0].delete()
    write_scores(judge_round)


def delete_node(_judge_round: Round, site: JudgedSite) -> None:
    type(site.members["bold"].node).objects.get(name="bold").delete()


def forge_right_answer(judge_round: Round, _site: JudgedSite) -> None:
    """Add an answer of bold, which left the last question out."""
    model, last = answers_of(judge_round, "bold")[0], judge_round.questions.latest("position")
    right = Answer.objects.filter(question=last, solved=True).first()
    text = right.text if right else f"<answer>{_solve(last)}</answer>"
    Answer.objects.create(
        question=last,
        node=model.node,
        text=text,
        finish_reason="stop",
        received_at=model.received_at,
        score=1.0,
        solved=True,
        verdict="right",
    )
    write_scores(judge_round)


def _solve(question: Question) -> int:
    left, sign, right = question.prompt.split(":")[1].strip(" =").split(" ")
    return int(left) + int(sign + right)


def regenerate_round(judge_round: Round, site: JudgedSite) -> None:
    """Choose another secret and rewrite the chain from there on, so that it is consistent."""
    fixed = ChainLink.objects.filter(round=judge_round.number, kind="scheduled").get()
    ChainLink.objects.filter(sequence__gte=fixed.sequence).delete()
    judge_round.secret = bytes(range(32))
    rules = msgspec.convert(judge_round.rules, QuizRules)
    judge_round.commitment = commit_quiz(rules, secret=judge_round.secret)
    judge_round.save()
    earlier = Round.objects.filter(season=judge_round.season, number__lt=judge_round.number)
    asked = {digest for digests in earlier.values_list("digests", flat=True) for digest in digests}
    drawn = draw_quiz(
        rules, secret=judge_round.secret, seen=asked.intersection, verifier=site.verifier
    )
    for question, task in zip(judge_round.questions.order_by("position"), drawn, strict=True):
        question.spec, question.prompt = msgspec.to_builtins(task.spec), task.question
        question.save()
        given = Answer.objects.filter(question=question)
        for answer in given:
            text = f"<answer>{_solve(question) + (0 if answer.solved else 1)}</answer>"
            change(answer, text=text, key=None, signature="")
    write_scores(judge_round)
    record_commitment(judge_round, now=site.now)
    record_answers(judge_round, now=site.now)
    record_results(judge_round, "closed", now=site.now, secret=judge_round.secret.hex())


def change_score(**fields: object) -> Manipulate:
    return lambda judge_round, _site: Score.objects.filter(
        round=judge_round, node__name="amber"
    ).update(**fields)


def change_answer(position: int, **fields: object) -> Manipulate:
    return lambda judge_round, _site: change(
        answers_of(judge_round, "amber")[position - 1], **fields
    )


def change_standing(_judge_round: Round, _site: JudgedSite) -> None:
    Standing.objects.filter(window="season", node__name="amber").update(score=0.9)


def change_commitment(judge_round: Round, _site: JudgedSite) -> None:
    Round.objects.filter(pk=judge_round.pk).update(commitment="c0" * 32)


def move_to_another_season(judge_round: Round, _site: JudgedSite) -> None:
    tasks = judge_round.season.tasks
    another = Season.objects.create(name="Another", state=Season.State.ENDED, tasks=tasks)
    Round.objects.filter(pk=judge_round.pk).update(season=another)


ROUND, SEASON = "verify-round", "verify-season"
# No question of the season has this answer.
RIGHT_TEXT = {"text": "<answer>-1000001</answer>"}

MANIPULATIONS: dict[str, tuple[str, Manipulate, list[str]]] = {
    "1 verdict to timeout": (ROUND, turn_right_into_timeout, ["✗ results", "at the site only"]),
    "2 wrong to ungraded": (ROUND, leave_wrong_ungraded, ["✗ results", "not graded in time"]),
    "3 right answer deleted": (
        ROUND,
        delete_right_answer,
        ["✗ all answers", "✗ receipts", "answer of amber to question 1: published not there"],
    ),
    "4 node deleted": (ROUND, delete_node, ["✗ all answers", "✗ results"]),
    "5 answer forged": (ROUND, forge_right_answer, ["✗ all answers", "✗ results"]),
    "6 round regenerated": (
        ROUND,
        regenerate_round,
        ["✗ chain", "seen here on", "✗ noted before", "✗ receipts"],
    ),
    "7 interval": (ROUND, change_score(interval_high=0.999), ["✗ results", "interval of amber"]),
    "7 model": (ROUND, change_score(model="another"), ["✗ results", "root of the results"]),
    "7 arm": (ROUND, change_score(arm="isolated"), ["✗ results", "root of the results"]),
    "7 label, of the season": (SEASON, change_score(arm="isolated"), ["✗ results", "round 3"]),
    "8 standing": (SEASON, change_standing, ["✗ leaderboard", "score of amber: published 0.9"]),
    "9 verdict": (
        ROUND,
        change_answer(4, verdict="right", score=1.0, solved=True),
        ["✗ answers", "here 0.0, not solved"],
    ),
    "10 score": (ROUND, change_score(score=0.9), ["✗ scores", "score of amber"]),
    "11 right text": (ROUND, change_answer(1, **RIGHT_TEXT), ["✗ answers", "✗ signatures"]),
    "12 wrong text": (
        ROUND,
        change_answer(4, text="<answer>-1000002</answer>"),
        ["✗ all answers", "✗ signatures", "✗ receipts"],
    ),
    "13 commitment": (ROUND, change_commitment, ["✗ commitment", "✗ fixed", "✗ noted before"]),
    "14 season": (SEASON, move_to_another_season, ["✗ rounds", "season of round 3"]),
}


@pytest.mark.parametrize(
    ("command", "manipulate", "expected"), MANIPULATIONS.values(), ids=MANIPULATIONS.keys()
)
def test_manipulation_is_detected(
    judged: JudgedSite, check: Check, command: str, manipulate: Manipulate, expected: list[str]
) -> None:
    judge_round = last_round()
    manipulate(judge_round, judged)
    result = check(command, *([str(judge_round.number)] if command == ROUND else []))
    assert result.exit_code == FAILED, result.output
    for words in expected:
        assert words in result.output, result.output


def test_honest_site_is_confirmed(judged: JudgedSite, check: Check) -> None:
    for arguments in ([ROUND, str(last_round().number)], [SEASON]):
        result = check(*arguments)
        assert result.exit_code == 0, result.output
        skipped = [line for line in result.output.splitlines() if line.startswith("–")]
        # The season has no public beacon.
        assert [line.split()[1] for line in skipped] in ([], ["beacon"]), result.output


def test_season_that_was_renamed_is_confirmed(judged: JudgedSite, check: Check) -> None:
    Season.objects.filter(pk=last_round().season_id).update(name="Renamed")
    result = check(SEASON)
    assert "✓ rounds" in result.output, result.output


@pytest.mark.parametrize(
    ("position", "verdict", "expected"),
    [
        (1, {"verdict": "timeout", "score": 0.0, "solved": False}, "1 timed out at the site only"),
        (4, {"verdict": "", "score": None, "solved": None}, "1 not graded in time"),
    ],
)
def test_verdict_changed_before_the_results_were_fixed_is_doubtful(
    judged: JudgedSite,
    check: Check,
    tmp_path: Path,
    position: int,
    verdict: dict[str, object],
    expected: str,
) -> None:
    """Scores, roots and chain are consistent; only regrading shows a difference."""
    site = judged.copy(tmp_path / "nodes")
    judge_round = site.play(
        before_close=lambda: change(answers_of(last_round(), "amber")[position - 1], **verdict)
    )
    amber = site.members["amber"].state.path
    result = check(ROUND, str(judge_round.number), folder=amber)
    assert result.exit_code == DOUBTFUL, result.output
    assert expected in result.output


@pytest.mark.parametrize("reason", ["not_offered", "declined"])
def test_scored_node_listed_as_absent_is_detected(
    judged: JudgedSite,
    check: Check,
    tmp_path: Path,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its attendance would decrease, although roots and chain are consistent."""
    site = judged.copy(tmp_path / "nodes")
    monkeypatch.setattr(scores, "_reason", lambda *_: Score.Reason(reason))
    judge_round = site.play()
    for arguments in ([ROUND, str(judge_round.number)], [SEASON]):
        result = check(*arguments, folder=site.members["amber"].state.path)
        assert result.exit_code == FAILED, result.output
        assert "reason of amber" in result.output
