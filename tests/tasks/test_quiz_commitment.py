"""A commitment fixes everything that a quiz is drawn from; the documented examples are right."""

import re
import shutil
import subprocess

import msgspec
import pytest

from swarm_protocol.errors import ErrorCode, RefusedError
from swarm_protocol.messages import TaskChoice
from swarm_tasks.answers import AnswerRules
from swarm_tasks.beacon import QUICKNET, Beacon, BeaconValue, mix_key
from swarm_tasks.quiz import (
    QUIZ_FORMAT,
    QUIZ_FORMAT_1,
    QUIZ_FORMAT_2,
    QUIZ_FORMAT_BEACON,
    QuizRules,
    commit_quiz,
    encode_rules,
    with_answers,
    with_beacon,
)
from swarm_tasks.starter import STARTER_TASKS
from swarm_tasks.verifier import Verifier
from tests.drand import value_of
from tests.tasks.faulty import REPOSITORY
from tests.tasks.quizzes import SECRET, draw_quiz, first_format, rules_of

EXAMPLE = (REPOSITORY / "docs" / "tasks.md").read_text().split("```sh\nsecret=")[1]

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
def test_commitment_depends_on_every_rule(change: dict[str, object]) -> None:
    changed = msgspec.structs.replace(rules_of(), **change)
    assert commit_quiz(changed, secret=SECRET) != commit_quiz(rules_of(), secret=SECRET)


def test_answer_rules_do_not_affect_the_questions(verifier: Verifier) -> None:
    rules = rules_of()
    newer = with_answers(rules, AnswerRules.UNWRAPPED)
    assert newer.answer_rules is AnswerRules.UNWRAPPED
    assert draw_quiz(newer, secret=SECRET, verifier=verifier) == draw_quiz(
        rules, secret=SECRET, verifier=verifier
    )


def test_exact_answer_rules_leave_rules_of_the_first_format_unchanged() -> None:
    """So rounds of earlier seasons keep their commitments, and older clients can check them."""
    rules = with_answers(first_format(rules_of()), AnswerRules.EXACT)
    assert rules == first_format(rules_of())
    assert rules.answer_rules is AnswerRules.EXACT
    assert b"answers" not in encode_rules(rules)


def test_commitment_depends_on_the_secret() -> None:
    assert commit_quiz(rules_of(), secret=SECRET[::-1]) != commit_quiz(rules_of(), secret=SECRET)


@pytest.mark.parametrize("answers", AnswerRules)
def test_commitment_is_unchanged_by_json_encoding_and_key_order(answers: AnswerRules) -> None:
    rules = with_answers(
        rules_of(TaskChoice("chain_sum", {"min_terms": 2, "max_terms": 3}, 1.0)), answers
    )
    other_order = with_answers(
        rules_of(TaskChoice("chain_sum", {"max_terms": 3, "min_terms": 2}, 1.0)), answers
    )
    travelled = msgspec.json.decode(msgspec.json.encode(other_order), type=QuizRules)
    assert commit_quiz(travelled, secret=SECRET) == commit_quiz(rules, secret=SECRET)


@pytest.mark.parametrize("secret", [b"", SECRET[:31], SECRET + b"{"])
def test_secret_of_another_length_is_refused(secret: bytes) -> None:
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
def test_commitments_of_earlier_formats_are_unchanged(
    answers: AnswerRules, format: str, published: str
) -> None:
    """Computed before rules included the questions of earlier rounds."""
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


def test_documented_rules_are_canonical_and_have_the_documented_commitment() -> None:
    rules = msgspec.json.decode(example_rules(), type=QuizRules)
    secret = bytes.fromhex(EXAMPLE.split("\n")[0])
    assert encode_rules(rules) == example_rules()
    assert f"# {commit_quiz(rules, secret=secret)}  -" in EXAMPLE


@pytest.mark.skipif(shutil.which("xxd") is None, reason="the example calls xxd")
def test_documented_commands_print_the_documented_commitment() -> None:
    script = "secret=" + EXAMPLE.split("```")[0]
    printed = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert f"# {printed.stdout}" in script


def test_documented_questions_are_drawn(verifier: Verifier) -> None:
    rules = msgspec.json.decode(example_rules(), type=QuizRules)
    secret = bytes.fromhex(EXAMPLE.split("\n")[0])
    documented = re.findall(r"^\| (\d+) \| (.+) \|$", EXAMPLE, flags=re.MULTILINE)
    drawn = draw_quiz(rules, secret=secret, verifier=verifier)
    assert [(str(task.spec.index), task.question) for task in drawn] == documented[: len(drawn)]
    assert len(drawn) == 4


@pytest.mark.skipif(shutil.which("openssl") is None, reason="the example calls openssl")
def test_documented_command_prints_the_key_derived_from_a_beacon() -> None:
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


def test_beacon_and_secret_together_determine_the_questions(verifier: Verifier) -> None:
    quizzes = [
        draw_quiz(bound_rules(), secret=secret, verifier=verifier, beacon=value_of(1000, by=by))
        for secret, by in ((SECRET, "toy"), (SECRET, "another"), (SECRET[::-1], "toy"))
    ]
    quizzes.append(draw_quiz(rules_of(), secret=SECRET, verifier=verifier))
    asked = [frozenset(task.question for task in drawn) for drawn in quizzes]
    assert len(set(asked)) == len(asked)


def test_same_beacon_value_gives_the_same_questions(verifier: Verifier) -> None:
    one, other = (
        draw_quiz(bound_rules(), secret=SECRET, verifier=verifier, beacon=value_of(1000))
        for _ in range(2)
    )
    assert one == other


def test_commitment_fixes_the_round_of_the_beacon() -> None:
    later = with_beacon(rules_of(), Beacon(QUICKNET, 1001))
    promised = {commit_quiz(rules, secret=SECRET) for rules in (rules_of(), bound_rules(), later)}
    assert len(promised) == 3


@pytest.mark.parametrize(
    ("rules", "value"),
    [(bound_rules(), None), (bound_rules(), value_of(999)), (rules_of(), value_of(1000))],
)
def test_beacon_value_must_be_the_one_that_the_rules_name(
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
def test_rules_with_an_unknown_beacon_are_refused(
    verifier: Verifier, change: dict[str, object]
) -> None:
    rules = msgspec.structs.replace(bound_rules(), **change)
    assert bound_rules().are_known
    assert not rules.are_known
    with pytest.raises(RefusedError) as refused:
        draw_quiz(rules, secret=SECRET, verifier=verifier, beacon=value_of(1000))
    assert refused.value.code == ErrorCode.TASK_FOREIGN


def test_rules_with_a_beacon_survive_json_encoding() -> None:
    raw = encode_rules(bound_rules())
    assert msgspec.json.decode(raw, type=QuizRules) == bound_rules()
    assert f'"format":"{QUIZ_FORMAT_BEACON}"'.encode() in raw
    assert b'"beacon"' not in encode_rules(rules_of())
