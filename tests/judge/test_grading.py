"""Answers are graded in batches, each once; a failing question affects only its answers."""

from time import monotonic, sleep

import msgspec
import pytest

from judge.engine import Phase
from judge.models import Answer, Round, Season
from judge.services import grading
from judge.services.grading import grade_batch
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.verdicts import Attempt
from swarm_tasks.verifier import DEADLINE_S, Verifier
from tests.judge.conftest import answers_to
from tests.judge.toys import OPEN_S, SCORING_S, Clock, Site, ToyVerifier, submit_answers


@pytest.fixture
def judge_round(site: Site) -> Round:
    """An open round that amber and birch have answered."""
    site.join("amber", "birch")
    judge_round = site.answer(amber="rrww", birch="wwwr")
    return judge_round


def graded() -> dict[str, bool | None]:
    return dict(Answer.objects.values_list("text", "solved"))


def test_real_answers_are_graded_by_the_real_verifier(
    season: Season, clock: Clock, verifier: Verifier
) -> None:
    site = Site(season, clock, verifier)
    site.join("amber")
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    answers = answers_to(judge_round, right=3)
    node = site.nodes["amber"]
    submit_answers(node, number=judge_round.number, answers=answers, now=clock.now)
    assert grade_batch(verifier=verifier) == 4
    stored = Answer.objects.order_by("question__position")
    assert [a.solved for a in stored] == [True, True, True, False]
    assert (stored[0].score, stored[0].verdict) == (1.0, "right")


def test_every_answer_gets_its_own_verdict(site: Site, judge_round: Round) -> None:
    assert site.grade() == 8
    for answer in Answer.objects.all():
        right = "right" in answer.text
        assert (answer.solved, answer.score) == (right, float(right)), answer.text
        assert answer.verdict == ("right" if right else "wrong")


def test_questions_are_graded_one_after_another_for_all_nodes(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "BATCH", 2)
    for finished in (1, 2, 3, 4):
        site.grade()
        done = Answer.objects.exclude(score=None).values_list("question", flat=True)
        assert (len(done), len(set(done))) == (2 * finished, finished)


def test_questions_are_graded_in_an_order_unknown_to_nodes(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nodes know positions and ids, but not the index that the secret drew."""
    monkeypatch.setattr(grading, "BATCH", 2)
    for question, index in zip(
        judge_round.questions.order_by("position"), [3, 1, 4, 2], strict=True
    ):
        question.spec["index"] = index
        question.save()
    done: list[int] = []
    for _ in range(4):
        site.grade()
        scored = Answer.objects.exclude(score=None)
        done += set(scored.values_list("question__position", flat=True)).difference(done)
    assert done == [2, 4, 1, 3]


@pytest.mark.parametrize(("reading", "right"), [("answers-1", False), ("answers-2", True)])
def test_answers_are_parsed_by_their_rounds_rules(
    season: Season, clock: Clock, verifier: Verifier, reading: str, right: bool
) -> None:
    Season.objects.update(answer_rules=reading)
    season.refresh_from_db()
    site = Site(season, clock, verifier)
    site.join("amber")
    judge_round = site.open("amber")
    site.sit(judge_round, "amber")
    # The round uses the rules that it started with.
    Season.objects.update(answer_rules="answers-1")
    answers = [
        msgspec.structs.replace(each, text=each.text.replace(">", ">$").replace("</", "$</"))
        for each in answers_to(judge_round, right=4)
    ]
    node = site.nodes["amber"]
    submit_answers(node, number=judge_round.number, answers=answers, now=clock.now)
    grade_batch(verifier=verifier)
    assert set(Answer.objects.values_list("solved", flat=True)) == {right}
    assert judge_round.rules["answers"] == reading


def test_a_graded_answer_is_not_graded_again(site: Site, judge_round: Round) -> None:
    site.grade()
    assert site.grade() == 0
    assert set(site.toy.seen.values()) == {1}


def test_answers_are_graded_while_their_round_is_open_and_while_it_is_scored(
    site: Site, judge_round: Round
) -> None:
    site.advance(1)
    judge_round.refresh_from_db()
    assert judge_round.phase == Round.Phase.SCORING
    assert site.grade() == 8


@pytest.mark.parametrize("phase", [Round.Phase.CLOSED, Round.Phase.VOID])
def test_answers_of_a_finished_round_are_not_graded(
    site: Site, judge_round: Round, phase: Phase
) -> None:
    Round.objects.update(phase=phase)
    assert site.grade() == 0


def test_verdicts_after_a_round_closed_are_not_written(site: Site, judge_round: Round) -> None:
    site.toy.on_grading = lambda: site.advance(OPEN_S + SCORING_S)
    assert site.grade() == 0
    assert set(graded().values()) == {None}


def test_answers_beyond_a_batch_are_left_for_the_next(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "BATCH", 5)
    assert [site.grade() for _ in range(3)] == [5, 3, 0]


# ---- questions that cannot be generated again


def test_a_failing_question_delays_only_its_own_answers(
    site: Site, judge_round: Round, caplog: pytest.LogCaptureFixture
) -> None:
    site.toy.broken = {"gcd"}
    assert site.grade() == 6
    aside = Answer.objects.filter(score=None)
    assert {(a.question.dataset, a.verdict) for a in aside} == {("gcd", "not_gradable")}
    assert not Answer.objects.filter(question__dataset="gcd").exclude(score=None).exists()
    assert "gcd is broken" in caplog.text


def test_delayed_answers_are_graded_once_their_question_works_again(
    site: Site, judge_round: Round
) -> None:
    site.toy.broken = {"gcd"}
    site.grade()
    site.toy.broken = set()
    assert site.grade() == 2
    assert not Answer.objects.filter(score=None).exists()
    assert set(Answer.objects.values_list("verdict", flat=True)) == {"right", "wrong"}


def test_delayed_answers_do_not_block_later_ones(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.toy.broken = {"gcd"}
    site.grade()
    Answer.objects.exclude(score=None).update(
        score=None, solved=None, verdict="", received_at=site.clock.advance(5)
    )
    monkeypatch.setattr(grading, "BATCH", 2)
    assert [site.grade() for _ in range(4)] == [2, 2, 2, 0]


class HangingVerifier(ToyVerifier):
    """A toy verifier of which the generation of `gcd` hangs for longer than a slice."""

    def score_until(
        self,
        batch: Batch,
        *,
        until: float,
        text_s: float = DEADLINE_S,
        rules: AnswerRules = AnswerRules.EXACT,
    ) -> list[list[Attempt]]:
        self.in_time = monotonic() < until
        if self.in_time and any(spec.dataset == "gcd" for spec, _ in batch):
            sleep(0.1)
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "gcd hangs")
        return super().score_until(batch, until=until, text_s=text_s, rules=rules)


def test_a_question_that_hangs_for_a_whole_slice_delays_only_its_own_answers(
    site: Site, judge_round: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grading, "SLICE_S", 0.05)
    site.verifier = HangingVerifier()
    for _ in range(2):
        site.grade()
    left = Answer.objects.filter(score=None).values_list("question__dataset", "verdict")
    assert set(left) == {("gcd", "not_gradable")}


def test_postponed_answers_are_graded_while_a_question_fails(site: Site) -> None:
    site.join("amber")
    site.answer(amber="srrr")
    site.toy.broken = {"gcd"}
    assert [site.grade() for _ in range(3)] == [3, 1, 0]
    assert Answer.objects.get(question__position=1).verdict == "timeout"


def test_answers_of_a_grader_that_fails_stay_ungraded(site: Site, judge_round: Round) -> None:
    def fail() -> None:
        raise OSError("no child")

    site.toy.on_grading = fail
    with pytest.raises(OSError, match="no child"):
        site.grade()
    site.toy.on_grading = lambda: None
    assert site.grade() == 8
