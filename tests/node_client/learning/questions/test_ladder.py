"""The ladder: difficulty follows success, and the season's own difficulty is always included."""

import json
import random
from collections import Counter

import msgspec
import pytest

from node_client.learning.questions.curriculum import AnsweredQuestion, StepOutcome
from node_client.learning.questions.ladder import HOME_EVERY, WINDOW, Ladder
from node_client.settings.train_config import TrainConfig
from swarm_protocol.messages import Config, SeasonInfo, TaskChoice, TaskSpec
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.verifier import Verifier
from tests.node_client.fakes import PoolInMemory, make_trainer, toy_policy, toy_season
from tests.node_client.learning.scripted import answer_right

WORDS: Config = {"min_word_len": 3, "max_word_len": 6}
SEASON = msgspec.structs.replace(toy_season(), tasks=[TaskChoice("spell_backward", WORDS, 1.0)])


def longest_word(ladder: Ladder, counter: int = 1) -> object:
    """Return the difficulty of the next question."""
    return ladder.choose(counter, rng=random.Random(0)).config["max_word_len"]


def answer(ladder: Ladder, count: int, *, solved: list[bool], config: Config | None = None) -> None:
    """Answer questions of the ladder's current rung, or of another one."""
    for _ in range(count):
        chosen = config or ladder.choose(1, rng=random.Random(0)).config
        spec = TaskSpec("spell_backward", chosen, 7, 1, GENERATOR)
        ladder.update(StepOutcome([AnsweredQuestion(spec, solved)], 0.0, None))


def test_node_starts_at_the_seasons_difficulty() -> None:
    ladder = Ladder(SEASON)
    assert longest_word(ladder) == 6
    assert ladder.figures() == {"spell_backward": 0}


def test_questions_get_easier_if_nothing_is_solved() -> None:
    ladder = Ladder(SEASON)
    answer(ladder, WINDOW - 1, solved=[False] * 4)
    assert longest_word(ladder) == 6
    answer(ladder, 1, solved=[False] * 4)
    assert longest_word(ladder) == 5
    answer(ladder, 10 * WINDOW, solved=[False] * 4)
    assert longest_word(ladder) == 3
    assert ladder.figures() == {"spell_backward": -2}


def test_questions_get_harder_if_nearly_all_are_solved() -> None:
    ladder = Ladder(SEASON)
    answer(ladder, WINDOW, solved=[True] * 4)
    assert longest_word(ladder) == 7
    answer(ladder, 10 * WINDOW, solved=[True] * 4)
    assert longest_word(ladder) == 11


def test_difficulty_with_mixed_answers_is_not_changed() -> None:
    ladder = Ladder(SEASON)
    answer(ladder, 10 * WINDOW, solved=[True, False])
    assert longest_word(ladder) == 6


def test_answers_of_another_rung_do_not_move_the_ladder() -> None:
    ladder = Ladder(SEASON)
    answer(ladder, 10 * WINDOW, solved=[False], config={"min_word_len": 3, "max_word_len": 9})
    assert longest_word(ladder) == 6


def test_every_fourth_question_has_the_seasons_difficulty() -> None:
    ladder = Ladder(SEASON)
    answer(ladder, WINDOW, solved=[False])
    asked = Counter(longest_word(ladder, counter) for counter in range(4 * HOME_EVERY))
    assert asked == {5: 4 * (HOME_EVERY - 1), 6: 4}


def test_rung_survives_a_restart() -> None:
    ladder, resumed = Ladder(SEASON), Ladder(SEASON)
    answer(ladder, 2 * WINDOW - 1, solved=[False])
    resumed.load(json.loads(json.dumps(ladder.state())), same_season=True)
    answer(resumed, 1, solved=[False])
    assert longest_word(resumed) == 3


def test_rung_is_restored_although_other_datasets_are_asked() -> None:
    """The setting `datasets` may have changed since the state was saved."""
    word, number = SEASON.tasks[0], toy_season().tasks[0]
    before, after, other = (
        Ladder(msgspec.structs.replace(SEASON, tasks=tasks))
        for tasks in ([word], [number, word], [number])
    )
    answer(before, WINDOW, solved=[False])
    for ladder in (after, other):
        ladder.load(json.loads(json.dumps(before.state())), same_season=True)
    assert after.figures() == {"chain_sum": 0, "spell_backward": -1}
    assert other.figures() == {"chain_sum": 0}


def test_rungs_of_two_configurations_of_a_dataset_are_restored() -> None:
    short, long = (TaskChoice("spell_backward", WORDS | {"max_word_len": n}, 1.0) for n in (5, 6))
    season = msgspec.structs.replace(SEASON, tasks=[short, long])
    ladder, resumed = Ladder(season), Ladder(season)
    answer(ladder, WINDOW, solved=[False], config=short.config)
    resumed.load(ladder.state(), same_season=True)
    assert resumed.state() == ladder.state()


def test_another_season_starts_at_its_own_difficulty() -> None:
    ladder, later = Ladder(SEASON), Ladder(SEASON)
    answer(ladder, WINDOW, solved=[False])
    later.load(ladder.state(), same_season=False)
    assert longest_word(later) == 6


@pytest.mark.parametrize(("saved", "longest"), [(-1, 3), (99, 11)])
def test_saved_rung_that_no_longer_exists_is_replaced_by_the_nearest(
    saved: int, longest: int
) -> None:
    ladder = Ladder(SEASON)
    ladder.load({"rungs": [saved], "recent": [[0.0] * (WINDOW - 1)]}, same_season=True)
    assert longest_word(ladder) == longest
    assert ladder.state()["recent"] == [[]]


def test_saved_rungs_of_other_tasks_are_ignored() -> None:
    ladder = Ladder(SEASON)
    ladder.load({"rungs": [0, 0], "recent": [[], []]}, same_season=True)
    assert ladder.figures() == {"spell_backward": 0}


@pytest.fixture
def climbing_season() -> SeasonInfo:
    """Return a season with sums that have an easier level."""
    sums: Config = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}
    return msgspec.structs.replace(toy_season(), tasks=[TaskChoice("chain_sum", sums, 1.0)])


def test_easier_questions_are_trained_on_but_not_published(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch, climbing_season: SeasonInfo
) -> None:
    policy = toy_policy()
    answer_right(policy, monkeypatch, right=lambda question: 0)
    pool = PoolInMemory()
    trainer = make_trainer(
        verifier,
        policy=policy,
        season=climbing_season,
        config=TrainConfig(curriculum="ladder"),
        exchange=pool,
    )
    while trainer.step().curriculum["chain_sum"] == 0:
        pass
    pool.published.clear()
    report = trainer.step()
    assert report.local_used == report.generated == 4
    assert [rollout.task.config["max_digits"] for rollout in pool.published] == [2]
