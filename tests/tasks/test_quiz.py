"""A round's questions follow from rules and a secret, and a commitment fixes both."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Container, Sequence
from fractions import Fraction
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks import quiz
from swarm_tasks.allowlist import GENERATOR
from swarm_tasks.answers import AnswerRules
from swarm_tasks.asked import NOTHING_ASKED, digest_question
from swarm_tasks.beacon import QUICKNET, Beacon, BeaconValue, mix_key
from swarm_tasks.keyspace import Part, index_part, question_part
from swarm_tasks.quiz import (
    QUIZ_FORMAT,
    QUIZ_FORMAT_1,
    QUIZ_FORMAT_2,
    QUIZ_FORMAT_BEACON,
    QuizRules,
    commit_quiz,
    encode_rules,
    share_questions,
    with_answers,
    with_beacon,
)
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import DrawnTask, Verifier
from tests.drand import value_of
from tests.tasks.faulty import REPOSITORY
from tests.tasks.specs import ONE_DIGIT, SEED

SECRET = bytes(range(32))
EXAMPLE = (REPOSITORY / "docs" / "tasks.md").read_text().split("```sh\nsecret=")[1]
weights = st.lists(st.floats(min_value=0.01, max_value=1000), min_size=1, max_size=20)


def tasks_of(weights: list[float]) -> list[TaskChoice]:
    return [
        TaskChoice(dataset=f"d{i}", config={}, weight=weight) for i, weight in enumerate(weights)
    ]


def rules_of(
    *tasks: TaskChoice, questions: int = 8, round: int = 1, season: str = "Season"
) -> QuizRules:
    return QuizRules(
        round=round,
        season=season,
        seed=SEED,
        generator=GENERATOR,
        tasks=list(tasks or STARTER_TASKS),
        questions=questions,
        answers=AnswerRules.EXACT.value,
        asked=NOTHING_ASKED,
    )


def first_format(rules: QuizRules) -> QuizRules:
    return msgspec.structs.replace(
        rules, format=QUIZ_FORMAT_1, answers=msgspec.UNSET, asked=msgspec.UNSET
    )


def draw_quiz(
    rules: QuizRules,
    *,
    secret: bytes,
    verifier: Verifier,
    asked: Container[int] = (),
    beacon: BeaconValue | None = None,
) -> list[DrawnTask]:
    def seen(digests: Sequence[int]) -> list[int]:
        return [digest for digest in digests if digest in asked]

    return quiz.draw_quiz(rules, secret=secret, seen=seen, verifier=verifier, beacon=beacon)


# ---- shares


@given(weights, st.integers(min_value=20, max_value=256))
def test_every_question_goes_to_a_task_and_every_task_gets_one(
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
def test_where_every_share_is_one_or_more_none_is_missed_by_a_whole_question(
    weights: list[float], total: int
) -> None:
    counts = share_questions(tasks_of(weights), total)
    for weight, count in zip(weights, counts, strict=True):
        assert abs(count - total * Fraction(weight) / sum(map(Fraction, weights))) < 1


def test_equal_weights_give_equal_strata() -> None:
    assert share_questions(tasks_of([1, 1, 1, 1]), 16) == [4, 4, 4, 4]


def test_what_does_not_divide_goes_to_the_first_of_equal_tasks() -> None:
    assert share_questions(tasks_of([1, 1, 1]), 5) == [2, 2, 1]


def test_a_task_of_little_weight_takes_its_question_from_all_others_alike() -> None:
    assert share_questions(tasks_of([0.001, 1, 1]), 9) == [1, 4, 4]


def test_fewer_questions_than_tasks_are_refused() -> None:
    with pytest.raises(ValueError, match="3 questions do not go round 4 tasks"):
        share_questions(tasks_of([1, 1, 1, 1]), 3)


# ---- questions


@pytest.mark.slow
def test_the_same_rules_and_secret_give_the_same_questions_to_everybody(
    verifier: Verifier,
) -> None:
    drawn = draw_quiz(rules_of(), secret=SECRET, verifier=verifier)
    with Verifier() as another:
        assert draw_quiz(rules_of(), secret=SECRET, verifier=another) == drawn


def test_another_secret_gives_other_questions(verifier: Verifier) -> None:
    quizzes = [
        {task.question for task in draw_quiz(rules_of(), secret=secret, verifier=verifier)}
        for secret in (SECRET, SECRET[::-1])
    ]
    assert len(quizzes[0] & quizzes[1]) <= 2


def test_questions_stand_by_dataset_in_the_order_and_numbers_of_the_mix(
    verifier: Verifier,
) -> None:
    tasks = (TaskChoice("products", ONE_DIGIT, 1.0), TaskChoice("chain_sum", ONE_DIGIT, 3.0))
    drawn = draw_quiz(rules_of(*tasks), secret=SECRET, verifier=verifier)
    datasets = [task.spec.dataset for task in drawn]
    assert datasets == ["products"] * 2 + ["chain_sum"] * 6


def test_every_question_is_the_judge_s_and_different(verifier: Verifier) -> None:
    drawn = draw_quiz(rules_of(questions=24), secret=SECRET, verifier=verifier)
    assert {index_part(task.spec.index) for task in drawn} == {Part.JUDGE}
    assert {question_part(task.question) for task in drawn} == {Part.JUDGE}
    assert len({task.question for task in drawn}) == 24


FEW = TaskChoice("count_bits", {"min_n": 1, "max_n": 200}, 1.0)


def test_no_question_is_asked_twice_until_the_dataset_says_that_none_is_left(
    verifier: Verifier,
) -> None:
    """Two hundred questions, of which about fifty are the judge's, four a round."""
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


def test_what_was_asked_is_passed_over_and_all_else_stays_in_order(verifier: Verifier) -> None:
    rules = rules_of(TaskChoice("chain_sum", {}, 1.0), questions=8)
    before = draw_quiz(rules, secret=SECRET, verifier=verifier)
    asked = {digest_question(task.question) for task in (before[2], before[5])}
    after = draw_quiz(rules, secret=SECRET, verifier=verifier, asked=asked)
    assert after[:6] == [*before[:2], *before[3:5], *before[6:]]


def test_the_same_question_under_another_index_is_a_repeat(verifier: Verifier) -> None:
    one = draw_quiz(rules_of(FEW, questions=8), secret=SECRET, verifier=verifier)
    asked = {digest_question(task.question) for task in one}
    other = draw_quiz(
        rules_of(FEW, questions=8), secret=SECRET[::-1], verifier=verifier, asked=asked
    )
    assert {task.spec.index for task in other}.isdisjoint(task.spec.index for task in one)
    assert {task.question for task in other}.isdisjoint(task.question for task in one)


@pytest.mark.parametrize("answers", AnswerRules)
def test_in_earlier_formats_a_small_question_space_repeats_only_when_it_is_used_up(
    verifier: Verifier, answers: AnswerRules
) -> None:
    few = TaskChoice("count_bits", {"min_n": 1, "max_n": 40}, 1.0)
    rules = with_answers(first_format(rules_of(few, questions=24)), answers)
    drawn = draw_quiz(rules, secret=SECRET, verifier=verifier)
    assert len(drawn) == 24
    asked = Counter(task.question for task in drawn)
    assert 1 < len(asked) < 24
    assert list(asked) == [task.question for task in drawn[: len(asked)]]


def test_the_names_of_round_and_season_play_no_part(verifier: Verifier) -> None:
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
def test_rules_that_this_version_does_not_follow_are_refused(
    verifier: Verifier, change: dict[str, object]
) -> None:
    rules = msgspec.structs.replace(rules_of(), **change)
    with pytest.raises(RefusedError, match=GENERATOR) as caught:
        draw_quiz(rules, secret=SECRET, verifier=verifier)
    assert caught.value.code is ErrorCode.TASK_FOREIGN


# ---- commitments


@pytest.mark.parametrize(
    "change",
    [
        {"round": 2},
        {"season": "Another"},
        {"seed": 1},
        {"generator": "reasoning-gym 9.9"},
        {"tasks": list(reversed(STARTER_TASKS))},
        {"questions": 9},
        {"format": "murmuration-quiz-9"},
        {"answers": "answers-2"},
        {"asked": "1" * 64},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_rule_is_committed_to(change: dict[str, object]) -> None:
    changed = msgspec.structs.replace(rules_of(), **change)
    assert commit_quiz(changed, secret=SECRET) != commit_quiz(rules_of(), secret=SECRET)


def test_the_way_to_read_answers_changes_no_question(verifier: Verifier) -> None:
    rules = rules_of()
    newer = with_answers(rules, AnswerRules.UNWRAPPED)
    assert newer.answer_rules is AnswerRules.UNWRAPPED
    assert draw_quiz(newer, secret=SECRET, verifier=verifier) == draw_quiz(
        rules, secret=SECRET, verifier=verifier
    )


def test_rules_of_the_first_format_that_read_answers_to_the_letter_stay_as_they_are() -> None:
    """So rounds of earlier seasons keep their commitments, and older clients can check them."""
    rules = with_answers(first_format(rules_of()), AnswerRules.EXACT)
    assert rules == first_format(rules_of())
    assert rules.answer_rules is AnswerRules.EXACT
    assert b"answers" not in encode_rules(rules)


def test_the_secret_is_committed_to() -> None:
    assert commit_quiz(rules_of(), secret=SECRET[::-1]) != commit_quiz(rules_of(), secret=SECRET)


@pytest.mark.parametrize("answers", AnswerRules)
def test_rules_that_travelled_as_json_have_the_same_commitment(answers: AnswerRules) -> None:
    rules = with_answers(
        rules_of(TaskChoice("chain_sum", {"min_terms": 2, "max_terms": 3}, 1.0)), answers
    )
    other_order = with_answers(
        rules_of(TaskChoice("chain_sum", {"max_terms": 3, "min_terms": 2}, 1.0)), answers
    )
    travelled = msgspec.json.decode(msgspec.json.encode(other_order), type=QuizRules)
    assert commit_quiz(travelled, secret=SECRET) == commit_quiz(rules, secret=SECRET)


@pytest.mark.parametrize("secret", [b"", SECRET[:31], SECRET + b"{"])
def test_a_secret_of_another_length_is_refused(secret: bytes) -> None:
    with pytest.raises(ValueError, match="32"):
        commit_quiz(rules_of(), secret=secret)


@pytest.mark.parametrize(
    ("answers", "format", "published"),
    [
        (
            AnswerRules.EXACT,
            QUIZ_FORMAT_1,
            "f15a6c92531f917ed98ce1c9f45aefdf914ce814487562909960f03640e0f167",
        ),
        (
            AnswerRules.UNWRAPPED,
            QUIZ_FORMAT_2,
            "a35bec980fb5f89393477604439c6d016850f252639e319132581c754a12fd3e",
        ),
    ],
)
def test_rules_of_earlier_formats_have_the_commitments_that_they_always_had(
    answers: AnswerRules, format: str, published: str
) -> None:
    """Computed when rules knew nothing of earlier rounds."""
    rules = QuizRules(
        round=7,
        season="Sums and letters",
        seed=20250911,
        generator="reasoning-gym 0.1.25",
        tasks=[
            TaskChoice("chain_sum", {"max_terms": 2, "min_terms": 2}, 3.0),
            TaskChoice("spell_backward", {}, 1.0),
        ],
        questions=4,
        format=QUIZ_FORMAT_1,
    )
    rules = with_answers(rules, answers)
    assert rules.format == format
    assert commit_quiz(rules, secret=SECRET) == published


# ---- the worked example of docs/tasks.md


def example_rules() -> bytes:
    return EXAMPLE.split("rules='")[1].split("'")[0].encode()


def test_the_documented_rules_are_canonical_and_have_the_documented_commitment() -> None:
    rules = msgspec.json.decode(example_rules(), type=QuizRules)
    secret = bytes.fromhex(EXAMPLE.split("\n")[0])
    assert encode_rules(rules) == example_rules()
    assert f"# {commit_quiz(rules, secret=secret)}  -" in EXAMPLE


@pytest.mark.skipif(shutil.which("xxd") is None, reason="the example calls xxd")
def test_the_documented_commands_print_the_documented_commitment() -> None:
    script = "secret=" + EXAMPLE.split("```")[0]
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert f"# {printed.stdout}" in script


def test_the_documented_questions_are_drawn(verifier: Verifier) -> None:
    rules = msgspec.json.decode(example_rules(), type=QuizRules)
    secret = bytes.fromhex(EXAMPLE.split("\n")[0])
    documented = re.findall(r"^\| (\d+) \| (.+) \|$", EXAMPLE, flags=re.MULTILINE)
    drawn = draw_quiz(rules, secret=secret, verifier=verifier)
    assert [(str(task.spec.index), task.question) for task in drawn] == documented[: len(drawn)]
    assert len(drawn) == 4


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the example calls openssl")
def test_the_documented_command_prints_the_key_that_a_beacon_gives() -> None:
    beacon = EXAMPLE.split("```sh\n")[1].split("```")[0]
    script = f"secret={EXAMPLE.splitlines()[0]}\n{beacon}"
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    randomness = beacon.splitlines()[0].removeprefix("randomness=")
    value = BeaconValue(123, randomness, "00")
    key = mix_key(SECRET, value).hex()
    assert printed.stdout.split()[-1] == key
    assert f"# {key}\n" in script


# ---- a public beacon

BEACON = Beacon(QUICKNET, 1000)


def bound_rules() -> QuizRules:
    return with_beacon(rules_of(), BEACON)


def test_the_beacon_decides_the_questions_together_with_the_secret(verifier: Verifier) -> None:
    quizzes = [
        draw_quiz(bound_rules(), secret=secret, verifier=verifier, beacon=value_of(1000, by=by))
        for secret, by in ((SECRET, "toy"), (SECRET, "another"), (SECRET[::-1], "toy"))
    ]
    quizzes.append(draw_quiz(rules_of(), secret=SECRET, verifier=verifier))
    asked = [frozenset(task.question for task in drawn) for drawn in quizzes]
    assert len(set(asked)) == len(asked)


def test_the_same_value_gives_the_same_questions(verifier: Verifier) -> None:
    one, other = (
        draw_quiz(bound_rules(), secret=SECRET, verifier=verifier, beacon=value_of(1000))
        for _ in range(2)
    )
    assert one == other


def test_the_commitment_fixes_which_value_it_will_be() -> None:
    later = with_beacon(rules_of(), Beacon(QUICKNET, 1001))
    promised = {commit_quiz(rules, secret=SECRET) for rules in (rules_of(), bound_rules(), later)}
    assert len(promised) == 3


@pytest.mark.parametrize(
    ("rules", "value"),
    [(bound_rules(), None), (bound_rules(), value_of(999)), (rules_of(), value_of(1000))],
)
def test_questions_are_drawn_with_the_value_that_the_rules_name_or_not_at_all(
    verifier: Verifier, rules: QuizRules, value: BeaconValue | None
) -> None:
    with pytest.raises(ValueError, match="the rules name round"):
        draw_quiz(rules, secret=SECRET, verifier=verifier, beacon=value)


@pytest.mark.parametrize(
    "change",
    [
        {"format": QUIZ_FORMAT},
        {"beacon": msgspec.UNSET},
        {"beacon": Beacon("ab" * 32, 1000)},
    ],
)
def test_rules_with_a_beacon_that_is_not_known_are_not_followed(
    verifier: Verifier, change: dict[str, object]
) -> None:
    rules = msgspec.structs.replace(bound_rules(), **change)
    assert bound_rules().are_known
    assert not rules.are_known
    with pytest.raises(RefusedError) as refused:
        draw_quiz(rules, secret=SECRET, verifier=verifier, beacon=value_of(1000))
    assert refused.value.code == ErrorCode.TASK_FOREIGN


def test_rules_with_a_beacon_travel_as_json() -> None:
    raw = encode_rules(bound_rules())
    assert msgspec.json.decode(raw, type=QuizRules) == bound_rules()
    assert f'"format":"{QUIZ_FORMAT_BEACON}"'.encode() in raw
    assert b'"beacon"' not in encode_rules(rules_of())
