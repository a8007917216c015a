"""History resampling: mastered questions are dropped, the others are asked again each epoch."""

import json
from collections import Counter

import msgspec
import pytest

from node_client.learning.questions.choice import Questions
from node_client.learning.questions.history import QuestionHistory
from node_client.settings.train_config import TrainConfig
from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.batches import Batch
from swarm_tasks.verdicts import Verdict
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import (
    BorrowingVerifier,
    FailingVerifier,
    make_trainer,
    toy_policy,
    toy_season,
    toy_stream,
)
from tests.node_client.learning.scripted import answer_right, sum_of

KEY = b"a node's key"
SOLVED, MIXED, WRONG = [True, True], [True, False], [False, False]


def spec(index: int) -> TaskSpec:
    return TaskSpec("chain_sum", {}, 7, index, GENERATOR)


def history_of(*, epoch_size: int) -> QuestionHistory:
    return QuestionHistory(epoch_size=epoch_size, key=KEY)


def next_indices(history: QuestionHistory, count: int) -> set[int | None]:
    """Return the indices of the next old questions, and None for fresh ones."""
    return {place.index if place else None for place in history.next_specs(count)}


def finish_epoch(history: QuestionHistory, results: dict[int, list[bool]]) -> set[int | None]:
    """Answer all questions of the first epoch and return those of the second one."""
    assert history.next_specs(len(results)) == [None] * len(results)
    for index, solved in results.items():
        history.record(spec(index), solved)
    return next_indices(history, len(results))


def test_first_epoch_asks_fresh_questions() -> None:
    assert history_of(epoch_size=3).next_specs(3) == [None] * 3


def test_question_solved_by_all_completions_is_dropped() -> None:
    again = finish_epoch(history_of(epoch_size=3), {0: SOLVED, 1: MIXED, 2: WRONG})
    assert 0 not in again


def test_mixed_and_all_wrong_questions_are_asked_again_in_the_next_epoch() -> None:
    again = finish_epoch(history_of(epoch_size=3), {0: SOLVED, 1: MIXED, 2: WRONG})
    assert again == {1, 2, None}


def test_question_mastered_later_is_dropped_then() -> None:
    history = history_of(epoch_size=2)
    assert finish_epoch(history, {0: WRONG, 1: WRONG}) == {0, 1}
    history.record(spec(0), SOLVED)
    history.record(spec(1), WRONG)
    assert next_indices(history, 2) == {None, 1}


def test_epoch_ends_only_between_batches() -> None:
    history = history_of(epoch_size=3)
    history.next_specs(2)
    assert history.next_specs(2) == [None, None]
    assert history.epoch == 0
    history.record(spec(5), WRONG)
    assert spec(5) in history.next_specs(3)
    assert history.epoch == 1


def test_history_never_grows_beyond_an_epoch() -> None:
    history = history_of(epoch_size=4)
    for batch in range(50):
        for place, old in enumerate(history.next_specs(3)):
            history.record(old or spec(3 * batch + place), WRONG)
    state = history.state()
    assert len(state["places"]) <= 4
    assert len(state["kept"]) <= 4 + 3


def test_saved_history_continues_where_it_was() -> None:
    first, second = history_of(epoch_size=4), history_of(epoch_size=4)
    first.next_specs(4)
    for index in range(4):
        first.record(spec(index), MIXED)
    first.next_specs(1)
    second.load(json.loads(json.dumps(first.state())))
    assert second.next_specs(3) == first.next_specs(3)
    assert second.epoch == first.epoch == 1


def test_training_drops_mastered_questions_and_repeats_the_others(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = toy_policy()
    # A third of the questions each: solved by all four completions, by two, by none.
    asked = answer_right(policy, monkeypatch, right=lambda question: 2 * (2 - sum_of(question) % 3))
    config = TrainConfig(resampling="history", history_epoch=12)
    trainer = make_trainer(verifier, policy=policy, config=config)
    for _ in range(6):
        trainer.step()
    first, second = Counter(asked[:12]), Counter(asked[12:])
    kept = Counter(question for question in first.elements() if sum_of(question) % 3)
    assert 0 < kept.total() < 12
    assert kept <= second


class UnscoringVerifier(BorrowingVerifier):
    """Cannot score one of the questions; `scored` lists all that it was asked to score."""

    def __init__(self, lender: Verifier, failing: TaskSpec) -> None:
        super().__init__(lender)
        self._failing = failing
        self.scored: list[TaskSpec] = []

    def score_many(
        self, batch: Batch, *, rules: AnswerRules = AnswerRules.EXACT
    ) -> list[list[Verdict]]:
        self.scored += [spec for spec, texts in batch if texts]
        if any(spec == self._failing and texts for spec, texts in batch):
            raise RefusedError(ErrorCode.VERIFIER_FAILED, "Gone.")
        return super().score_many(batch, rules=rules)


def test_failed_batch_asks_its_old_questions_again_except_the_failed_one(
    verifier: Verifier,
) -> None:
    config = TrainConfig(resampling="history", history_epoch=4)
    drawn = [task.spec for task in toy_stream(verifier).draw(4)]
    places = [msgspec.to_builtins(spec) for spec in drawn]
    history = {"epoch": 1, "places": places, "kept": []}
    saved = {"counter": 0, "history": history, "curriculum": {}}
    failing = FailingVerifier(verifier, drawn[1])
    questions = Questions(verifier=failing, season=toy_season(), config=config, key=KEY)
    questions.load(saved, same_season=True)
    with pytest.raises(RefusedError):
        questions.draw(3)
    again = [task.spec for task in questions.draw(3)]
    assert again == [drawn[0], drawn[2], drawn[3]]


def test_unscorable_batch_asks_its_old_questions_again_except_the_failed_one(
    verifier: Verifier,
) -> None:
    drawn = [task.spec for task in toy_stream(verifier).draw(4)]
    history = {"epoch": 1, "places": [msgspec.to_builtins(spec) for spec in drawn], "kept": []}
    config = TrainConfig(resampling="history", history_epoch=4)
    failing = UnscoringVerifier(verifier, drawn[1])
    trainer = make_trainer(failing, config=config)
    fresh = trainer.state_dict()
    trainer.load_state({**fresh, "questions": {**fresh["questions"], "history": history}})
    with pytest.raises(RefusedError):
        trainer.step()
    failing.scored.clear()
    trainer.step()
    assert [spec for spec in failing.scored if spec in drawn] == [drawn[0], drawn[2], drawn[3]]


def test_checkpoint_after_a_failed_batch_contains_its_old_questions() -> None:
    history = history_of(epoch_size=2)
    again = finish_epoch(history, {0: WRONG, 1: WRONG})
    loaded = history_of(epoch_size=2)
    loaded.load(json.loads(json.dumps(history.state())))
    assert next_indices(loaded, 2) == again == {0, 1}
