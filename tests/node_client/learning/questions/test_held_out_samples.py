"""Several answers to each held-out question: their mean counts, and the question is the unit."""

import random

import msgspec
import pytest

from node_client.learning.questions.held_out import HeldOutScore, score_shares, wilson_interval
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer, toy_policy, toy_season
from tests.node_client.learning.scripted import answer_right, record_batches, sum_of

SAMPLED = TrainConfig(eval_tasks=12, eval_samples=8, eval_temperature=0.7)


def evaluate(
    verifier: Verifier, policy: Policy, config: TrainConfig = SAMPLED, *, temperature: float = 0.0
) -> HeldOutScore:
    season = msgspec.structs.replace(toy_season(), temperature=temperature)
    trainer = make_trainer(verifier, policy=policy, season=season, config=config)
    evaluation = trainer.begin_evaluation()
    while (score := evaluation.ask()) is None:
        pass
    return score


def test_score_is_the_mean_share_of_right_answers(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    asked = answer_right(policy, monkeypatch, right=lambda question: sum_of(question) % 2 * 6)
    score = evaluate(verifier, policy)
    odd = sum(sum_of(question) % 2 for question in asked) / len(asked)
    assert 0 < odd < 1
    assert score.score == pytest.approx(odd * 6 / 8)


def test_n_counts_questions(verifier: Verifier) -> None:
    assert evaluate(verifier, toy_policy()).n == 12


@pytest.mark.parametrize(
    ("config", "expected"),
    [(SAMPLED, (8, 0.7)), (TrainConfig(eval_tasks=12, eval_temperature=0.7), (1, 0.2))],
)
def test_single_answer_has_the_seasons_temperature_and_several_have_their_own(
    verifier: Verifier,
    monkeypatch: pytest.MonkeyPatch,
    config: TrainConfig,
    expected: tuple[int, float],
) -> None:
    policy = toy_policy()
    batches = record_batches(policy, monkeypatch)
    evaluate(verifier, policy, config, temperature=0.2)
    [batch] = batches
    assert (batch.sampling["completions"], batch.sampling["temperature"]) == expected


def test_fewer_questions_are_asked_at_once_with_many_samples(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    answer_right(policy, monkeypatch, right=lambda question: 0)
    batches = record_batches(policy, monkeypatch)
    evaluate(verifier, policy, TrainConfig(eval_tasks=5, eval_samples=128))
    assert [len(batch.questions) for batch in batches] == [2, 2, 1]


def test_interval_of_questions_always_or_never_solved_ignores_the_samples() -> None:
    score = score_shares({"sums": [1.0] * 5 + [0.0] * 15}, samples=32)
    assert (score.low, score.high) == wilson_interval(0.25, 20)


def test_interval_counts_each_answer_if_answers_to_a_question_are_independent() -> None:
    score = score_shares({"sums": [0.25] * 20}, samples=32)
    assert (score.low, score.high) == wilson_interval(0.25, 20 * 32)


def test_zero_score_is_as_uncertain_as_with_one_answer_per_question() -> None:
    once, often = (score_shares({"sums": [0.0] * 20}, samples=n) for n in (1, 32))
    assert once == often


def test_interval_covers_the_true_score_of_different_questions() -> None:
    rng = random.Random(5)

    def evaluation() -> HeldOutScore:
        """Return the score of 64 questions, solved at rates of a uniform distribution."""
        rates = [rng.random() for _ in range(64)]
        shares = [sum(rng.random() < rate for _ in range(16)) / 16 for rate in rates]
        return score_shares({"sums": shares}, samples=16)

    covered = sum(score.low <= 0.5 <= score.high for score in (evaluation() for _ in range(200)))
    assert 0.91 < covered / 200 < 0.99
