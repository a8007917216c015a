"""The complete SRPO recipe: two stages, a difficulty ladder and history resampling in one run."""

import json
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from node_client.learning.questions.choice import Questions
from node_client.learning.questions.curriculum import AnsweredQuestion, StepOutcome
from node_client.learning.questions.history import QuestionHistory
from node_client.learning.questions.ladder import WINDOW as CLIMB
from node_client.learning.questions.ladder import Ladder
from node_client.learning.questions.stages import PATIENCE, WINDOW, Stages
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import Config, TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import make_trainer, toy_policy, toy_season
from tests.node_client.learning.scripted import answer_right

SUMS: Config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}
EASIER: Config = {**SUMS, "max_digits": 1}
SEASON = msgspec.structs.replace(
    toy_season(), tasks=[TaskChoice("chain_sum", SUMS, 1.0), TaskChoice("spell_backward", {}, 1.0)]
)
SUMS_ONLY = msgspec.structs.replace(SEASON, tasks=SEASON.tasks[:1])
WHOLE = TrainConfig(curriculum="staged+ladder", resampling="history", history_epoch=8)
ROUND = TrainConfig(
    curriculum="staged",
    stage_switch="round",
    stage_rounds=1,
    resampling="history",
    history_epoch=8,
)


def staged_ladder() -> tuple[Stages, Ladder]:
    stages = Stages(SEASON, switch="plateau", rounds=1)
    return stages, Ladder(SEASON, stages)


def asked_by(ladder: Ladder) -> set[tuple[str, object]]:
    """Return the datasets of forty questions, with the maximal number of digits in sums."""
    choices = [ladder.choose(4 * n + 1, rng=random.Random(n)) for n in range(40)]
    return {(choice.dataset, choice.config.get("max_digits")) for choice in choices}


def pass_steps(ladder: Ladder, count: int, *, solved: Sequence[bool] = ()) -> None:
    """Make steps of one sum each with these results, at the ladder's current difficulty."""
    for _ in range(count):
        config = ladder.choose(1, rng=random.Random(0)).config
        answered = [AnsweredQuestion(TaskSpec("chain_sum", config, 7, 1, GENERATOR), solved)]
        ladder.update(StepOutcome(answered if solved else [], 0.5, None))


def test_first_stage_climbs_only_in_mathematics() -> None:
    _, ladder = staged_ladder()
    pass_steps(ladder, CLIMB, solved=[False])
    assert asked_by(ladder) == {("chain_sum", 1)}


def test_second_stage_keeps_the_rung_and_adds_code() -> None:
    _, ladder = staged_ladder()
    pass_steps(ladder, CLIMB, solved=[False])
    pass_steps(ladder, WINDOW * (1 + PATIENCE))
    assert asked_by(ladder) == {("chain_sum", 1), ("spell_backward", None)}
    assert ladder.figures() == {"stage": 2, "chain_sum": -1, "spell_backward": 0}


def test_move_of_the_ladder_restarts_the_search_for_a_plateau() -> None:
    stages, ladder = staged_ladder()
    pass_steps(ladder, WINDOW * (1 + PATIENCE) - CLIMB - 1)
    pass_steps(ladder, CLIMB, solved=[False])
    pass_steps(ladder, WINDOW * (1 + PATIENCE) - 1)
    assert stages.stage == 1
    pass_steps(ladder, 1)
    assert stages.stage == 2


def test_forgotten_questions_are_replaced_by_fresh_ones() -> None:
    history = QuestionHistory(epoch_size=4, key=b"key")
    history.next_specs(4)
    for index in range(4):
        history.record(TaskSpec("chain_sum", {}, 7, index, GENERATOR), [False])
    [again] = history.next_specs(1)
    assert again is not None
    history.record(again, [False])
    left = (again.index + 1) % 4
    history.forget(lambda spec: spec.index != left)
    # The rest of this epoch, then the next one: the question just answered was dropped as well.
    places = history.next_specs(3)
    assert [place.index for place in places if place] == [left]
    history.record(TaskSpec("chain_sum", {}, 7, left, GENERATOR), [True])
    assert history.next_specs(4) == [None] * 4


def questions_of(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch, *, right: int, config: TrainConfig
) -> tuple[Any, list[str]]:
    """Return a trainer whose policy gives `right` right answers, and the list of its questions."""
    policy = toy_policy()
    asked = answer_right(policy, monkeypatch, right=lambda question: right)
    return make_trainer(verifier, policy=policy, season=SUMS_ONLY, config=config), asked


def digits(question: str) -> int:
    """Return the number of digits of the longest number in a sum."""
    return max(len(word) for word in question.split() if word.isdigit())


def test_unsolved_questions_of_an_earlier_rung_are_not_asked_again(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TrainConfig(curriculum="ladder", resampling="history", history_epoch=8)
    trainer, asked = questions_of(verifier, monkeypatch, right=0, config=config)
    while trainer.step().curriculum["chain_sum"] == 0:
        pass
    left = {question for question in asked if digits(question) == 2}
    asked.clear()
    for _ in range(6):
        trainer.step()
    assert left
    assert left.isdisjoint(asked)


def test_second_stage_starts_with_fresh_questions(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer, asked = questions_of(verifier, monkeypatch, right=2, config=ROUND)
    trainer.judge_round = 1
    for _ in range(3):
        trainer.step()
    assert len(set(asked)) == 8  # the third step repeated the questions of the first
    trainer.judge_round = 2
    trainer.step()
    first = set(asked)
    asked.clear()
    for _ in range(2):
        assert trainer.step().curriculum == {"stage": 2}
    assert first.isdisjoint(asked)


@pytest.mark.parametrize(
    ("earlier", "figures"),
    [("staged", {"stage": 2, "chain_sum": 0}), ("ladder", {"stage": 1, "chain_sum": -1})],
)
def test_checkpoint_of_one_part_continues_with_both(
    verifier: Verifier, earlier: str, figures: dict[str, float]
) -> None:
    stages, ladder = Stages(SUMS_ONLY, switch="plateau", rounds=1), Ladder(SUMS_ONLY)
    stages.stage = 2
    pass_steps(ladder, CLIMB, solved=[False])
    states = {"staged": stages.state(), "ladder": ladder.state()}
    saved = {"counter": 5, "history": None, "curriculum": {earlier: states[earlier]}}
    questions = Questions(verifier=verifier, season=SUMS_ONLY, config=WHOLE, key=b"key")
    questions.load(json.loads(json.dumps(saved)), same_season=True)
    assert questions.figures() == figures


def test_saved_recipe_continues_where_it_was(verifier: Verifier) -> None:
    first, second = (
        Questions(verifier=verifier, season=SEASON, config=WHOLE, key=b"key") for _ in range(2)
    )
    first.draw(3)
    second.load(json.loads(json.dumps(first.state())), same_season=True)
    assert second.state() == first.state()
    assert [task.spec for task in second.draw(4)] == [task.spec for task in first.draw(4)]
