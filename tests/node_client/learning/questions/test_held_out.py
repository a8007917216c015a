"""The held-out curve: fixed questions, a correct interval, and no effect on the training."""

import msgspec
import pytest

from node_client.learning.questions.held_out import (
    QUESTIONS_AT_ONCE,
    Evaluation,
    HeldOutScore,
    HeldOutSet,
    score_shares,
    wilson_interval,
)
from node_client.model.policy import Policy
from node_client.runtime.alone import practice_season
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import RefusedError
from swarm_tasks.keyspace import Part, question_part
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import OnceFailingVerifier, make_trainer, toy_policy
from tests.node_client.learning.scripted import record_batches


def questions_of(held_out: HeldOutSet, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the questions of an evaluation."""
    policy = toy_policy()
    batches = record_batches(policy, monkeypatch)
    evaluate(held_out, policy)
    return [question for batch in batches for question in batch.questions]


def evaluate(held_out: HeldOutSet, policy: Policy) -> HeldOutScore:
    return finish(Evaluation(held_out, policy))


def finish(evaluation: Evaluation) -> HeldOutScore:
    while (score := evaluation.ask()) is None:
        pass
    return score


def held_out_set(verifier: Verifier, *, size: int = 24) -> HeldOutSet:
    return HeldOutSet(verifier=verifier, season=practice_season(), size=size)


def test_set_is_the_same_for_every_node_and_every_evaluation(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = held_out_set(verifier)
    first = questions_of(held_out, monkeypatch)
    assert questions_of(held_out, monkeypatch) == first
    assert questions_of(held_out_set(verifier), monkeypatch) == first


def test_questions_are_held_out_and_distinct(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = questions_of(held_out_set(verifier), monkeypatch)
    assert {question_part(question) for question in questions} == {Part.HELD_OUT}
    assert len(set(questions)) == len(questions) == 24


def test_another_season_has_another_set(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    season = msgspec.structs.replace(practice_season(), seed=8)
    other = HeldOutSet(verifier=verifier, season=season, size=24)
    assert questions_of(other, monkeypatch) != questions_of(held_out_set(verifier), monkeypatch)


@pytest.mark.slow
def test_evaluation_does_not_affect_the_training(verifier: Verifier) -> None:
    weights = []
    for eval_tasks in (0, 16):
        policy = Policy.load("tiny", device="cpu")
        trainer = make_trainer(
            verifier,
            policy=policy,
            season=practice_season(),
            config=TrainConfig(learning_rate=1e-3, eval_tasks=eval_tasks),
        )
        for _ in range(3):
            if eval_tasks:
                finish(trainer.begin_evaluation())
            trainer.step()
        weights.append([parameter.tolist() for parameter in policy.trainable()])
    assert weights[0] == weights[1]


def test_questions_are_asked_in_batches(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    held_out = held_out_set(verifier, size=QUESTIONS_AT_ONCE + 3)
    policy = toy_policy()
    batches = record_batches(policy, monkeypatch)
    assert evaluate(held_out, policy).n == QUESTIONS_AT_ONCE + 3
    assert [len(batch.questions) for batch in batches] == [QUESTIONS_AT_ONCE, 3]


def test_every_dataset_has_the_same_weight_for_any_number_of_questions() -> None:
    score = score_shares({"few": [1.0, 0.0], "many": [1.0] * 30}, samples=1)
    assert (score.score, score.n) == (0.75, 32)


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    # Computed with proportion_confint of statsmodels.
    [(0.0, 10, 0.0, 0.277533), (0.5, 100, 0.403832, 0.596168), (0.9, 50, 0.786397, 0.956524)],
)
def test_interval_is_that_of_wilson(share: float, n: float, low: float, high: float) -> None:
    assert wilson_interval(share, n) == pytest.approx((low, high), abs=1e-5)


def test_sampled_answers_do_not_depend_on_the_time_of_the_evaluation(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    season = msgspec.structs.replace(practice_season(), temperature=1.0)
    held_out = HeldOutSet(verifier=verifier, season=season, size=8)
    policy = Policy.load("tiny", device="cpu")
    batches = record_batches(policy, monkeypatch)
    evaluate(held_out, policy)
    evaluate(held_out, policy)
    assert batches[0].answers == batches[1].answers


@pytest.mark.slow
def test_training_raises_the_held_out_score(verifier: Verifier) -> None:
    trainer = make_trainer(
        verifier,
        policy=Policy.load("tiny", device="cpu"),
        season=practice_season(),
        config=TrainConfig(arm="isolated", eval_tasks=128),
    )
    before = finish(trainer.begin_evaluation())
    for _ in range(40):
        trainer.step()
    after = finish(trainer.begin_evaluation())
    assert after.low > before.high


def test_set_is_complete_after_the_verifier_failed_while_it_was_drawn(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = questions_of(held_out_set(verifier), monkeypatch)
    held_out = held_out_set(OnceFailingVerifier(verifier, draw=len(whole)))
    with pytest.raises(RefusedError):
        evaluate(held_out, toy_policy())
    assert questions_of(held_out, monkeypatch) == whole
