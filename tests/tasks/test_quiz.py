"""Drawing a round's questions from rules and a secret: shares, order and no repetition."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import digest_question
from swarm_tasks.keyspace import Part, index_part, question_part
from swarm_tasks.quiz import (
    QUIZ_FORMAT_1,
    QUIZ_FORMAT_2,
    share_questions,
    with_answers,
)
from swarm_tasks.verifier import Verifier
from tests.tasks.quizzes import SECRET, draw_quiz, first_format, rules_of, tasks_of
from tests.tasks.specs import ONE_DIGIT

weights = st.lists(st.floats(min_value=0.01, max_value=1000), min_size=1, max_size=20)


# ---- shares


@given(weights, st.integers(min_value=20, max_value=256))
def test_all_questions_are_shared_out_and_every_task_gets_one(
    weights: list[float], total: int
) -> None:
    counts = share_questions(tasks_of(weights), total)
    assert sum(counts) == total
    assert min(counts) >= 1


@given(weights, st.integers(min_value=20, max_value=256))
def test_no_task_gets_more_than_a_heavier_one(weights: list[float], total: int) -> None:
    counts = share_questions(tasks_of(weights), total)
    by_weight = sorted(zip(weights, counts, strict=True))
    for (lighter, fewer), (heavier, more) in pairwise(by_weight):
        assert fewer <= more or lighter == heavier


@given(
    st.lists(st.floats(min_value=1, max_value=4), min_size=1, max_size=20),
    st.integers(min_value=80, max_value=256),
)
def test_share_is_less_than_one_question_off_if_every_share_is_at_least_one(
    weights: list[float], total: int
) -> None:
    counts = share_questions(tasks_of(weights), total)
    for weight, count in zip(weights, counts, strict=True):
        assert abs(count - total * Fraction(weight) / sum(map(Fraction, weights))) < 1


def test_equal_weights_give_equal_shares() -> None:
    assert share_questions(tasks_of([1, 1, 1, 1]), 16) == [4, 4, 4, 4]


def test_remainder_goes_to_the_first_of_equal_tasks() -> None:
    assert share_questions(tasks_of([1, 1, 1]), 5) == [2, 2, 1]


def test_question_of_a_light_task_is_taken_evenly_from_all_others() -> None:
    assert share_questions(tasks_of([0.001, 1, 1]), 9) == [1, 4, 4]


def test_fewer_questions_than_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="3 questions do not go round 4 tasks"):
        share_questions(tasks_of([1, 1, 1, 1]), 3)


# ---- questions


@pytest.mark.slow
def test_rules_and_secret_determine_the_questions(
    verifier: Verifier,
) -> None:
    drawn = draw_quiz(rules_of(), secret=SECRET, verifier=verifier)
    with Verifier() as another:
        assert draw_quiz(rules_of(), secret=SECRET, verifier=another) == drawn


def test_different_secrets_give_different_questions(verifier: Verifier) -> None:
    quizzes = [
        {task.question for task in draw_quiz(rules_of(), secret=secret, verifier=verifier)}
        for secret in (SECRET, SECRET[::-1])
    ]
    assert len(quizzes[0] & quizzes[1]) <= 2


def test_questions_follow_the_order_and_shares_of_the_mix(
    verifier: Verifier,
) -> None:
    tasks = (TaskChoice("products", ONE_DIGIT, 1.0), TaskChoice("chain_sum", ONE_DIGIT, 3.0))
    drawn = draw_quiz(rules_of(*tasks), secret=SECRET, verifier=verifier)
    datasets = [task.spec.dataset for task in drawn]
    assert datasets == ["products"] * 2 + ["chain_sum"] * 6


def test_all_questions_are_distinct_and_in_the_judge_part(verifier: Verifier) -> None:
    drawn = draw_quiz(rules_of(questions=24), secret=SECRET, verifier=verifier)
    assert {index_part(task.spec.index) for task in drawn} == {Part.JUDGE}
    assert {question_part(task.question) for task in drawn} == {Part.JUDGE}
    assert len({task.question for task in drawn}) == 24


FEW = TaskChoice("count_bits", {"min_n": 1, "max_n": 200}, 1.0)


def test_no_question_repeats_until_the_dataset_is_exhausted(
    verifier: Verifier,
) -> None:
    """Of two hundred questions, about fifty are in the judge part; a round asks four."""
    asked: list[int] = []

    def ask(round: int) -> None:
        secret, rules = round.to_bytes(32, "big"), rules_of(FEW, questions=4)
        drawn = draw_quiz(rules, secret=secret, verifier=verifier, asked=asked)
        asked.extend(digest_question(task.question) for task in drawn)

    judges = sum(question_part(_count_bits(n)) is Part.JUDGE for n in range(1, 201))
    for round in range(judges // 4 - 1):
        ask(round)
    assert len(set(asked)) == len(asked)
    ask(1000)
    with pytest.raises(RefusedError, match="count_bits has too few questions left") as caught:
        ask(1001)
    assert caught.value.code is ErrorCode.TASK_EXHAUSTED


def _count_bits(n: int) -> str:
    return f"How many 1 bits are there in the binary representation of the number {n:,}?"


def test_earlier_questions_are_skipped_without_reordering_the_rest(verifier: Verifier) -> None:
    rules = rules_of(TaskChoice("chain_sum", {}, 1.0), questions=8)
    before = draw_quiz(rules, secret=SECRET, verifier=verifier)
    asked = {digest_question(task.question) for task in (before[2], before[5])}
    after = draw_quiz(rules, secret=SECRET, verifier=verifier, asked=asked)
    assert after[:6] == [*before[:2], *before[3:5], *before[6:]]


def test_same_question_at_another_index_is_a_repeat(verifier: Verifier) -> None:
    one = draw_quiz(rules_of(FEW, questions=8), secret=SECRET, verifier=verifier)
    asked = {digest_question(task.question) for task in one}
    other = draw_quiz(
        rules_of(FEW, questions=8), secret=SECRET[::-1], verifier=verifier, asked=asked
    )
    assert {task.spec.index for task in other}.isdisjoint(task.spec.index for task in one)
    assert {task.question for task in other}.isdisjoint(task.question for task in one)


@pytest.mark.parametrize("answers", AnswerRules)
def test_earlier_formats_repeat_questions_only_after_exhausting_a_small_space(
    verifier: Verifier, answers: AnswerRules
) -> None:
    few = TaskChoice("count_bits", {"min_n": 1, "max_n": 40}, 1.0)
    rules = with_answers(first_format(rules_of(few, questions=24)), answers)
    drawn = draw_quiz(rules, secret=SECRET, verifier=verifier)
    assert len(drawn) == 24
    asked = Counter(task.question for task in drawn)
    assert 1 < len(asked) < 24
    assert list(asked) == [task.question for task in drawn[: len(asked)]]


def test_names_of_round_and_season_do_not_affect_the_questions(verifier: Verifier) -> None:
    one, other = rules_of(round=1, season="One"), rules_of(round=2, season="Another")
    assert draw_quiz(one, secret=SECRET, verifier=verifier) == draw_quiz(
        other, secret=SECRET, verifier=verifier
    )


@pytest.mark.parametrize(
    "change",
    [
        {"format": "murmuration-quiz-9"},
        {"generator": "reasoning-gym 9.9"},
        {"answers": msgspec.UNSET},
        {"answers": "answers-99"},
        {"format": QUIZ_FORMAT_2, "answers": msgspec.UNSET},
        {"format": QUIZ_FORMAT_2, "answers": "answers-99"},
        {"format": QUIZ_FORMAT_1, "answers": "answers-2"},
    ],
)
def test_rules_unknown_to_this_version_are_refused(
    verifier: Verifier, change: dict[str, object]
) -> None:
    rules = msgspec.structs.replace(rules_of(), **change)
    with pytest.raises(RefusedError, match=GENERATOR) as caught:
        draw_quiz(rules, secret=SECRET, verifier=verifier)
    assert caught.value.code is ErrorCode.TASK_FOREIGN
