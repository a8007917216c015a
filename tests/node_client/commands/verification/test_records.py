import json
import math
from typing import Any

import pytest

from node_client.commands.verification.records import MAX_QUESTIONS, read_answer, read_round
from node_client.errors import UncheckableError
from tests.node_client.commands.verification.rounds import Published


def read(record: dict[str, Any]) -> None:
    read_round(json.dumps(record).encode())


def test_questions_are_sorted_by_position(published: Published) -> None:
    published.record["questions"].reverse()
    assert [question.position for question in published.round.questions] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("phase", ["scheduled", "open", "scoring"])
def test_unfinished_round_is_still_sealed(phase: str) -> None:
    record = {"phase": phase, "commitment": "c0ffee", "secret": None, "rules": None}
    with pytest.raises(
        UncheckableError, match=f"{phase}: its questions are still sealed"
    ) as caught:
        read(record)
    assert "when it has closed" in caught.value.fix


def test_void_round_cannot_be_checked() -> None:
    with pytest.raises(UncheckableError, match="This round is void"):
        read({"phase": "void"})


@pytest.mark.parametrize("record", [{"phase": "closed"}, {"phase": "closed", "commitment": ""}])
def test_round_without_a_commitment_cannot_be_checked(record: dict[str, Any]) -> None:
    with pytest.raises(UncheckableError, match="before rounds had commitments"):
        read(record)


def test_another_generator_version_requires_another_client(published: Published) -> None:
    published.record["rules"]["generator"] = "reasoning-gym 9.9.9"
    with pytest.raises(UncheckableError, match=r"9\.9\.9") as caught:
        read(published.record)
    assert "join page" in caught.value.fix


def test_unknown_quiz_format_requires_another_client(published: Published) -> None:
    published.record["rules"]["format"] = "murmuration-quiz-9"
    with pytest.raises(UncheckableError, match="murmuration-quiz-9") as caught:
        read(published.record)
    assert "join page" in caught.value.fix


def test_unknown_answer_rules_require_another_client(published: Published) -> None:
    published.record["rules"]["answers"] = "answers-9"
    with pytest.raises(UncheckableError, match="answers-9") as caught:
        read(published.record)
    assert "join page" in caught.value.fix


@pytest.mark.parametrize("questions", [0, 1, MAX_QUESTIONS + 1, 10**9])
def test_rules_for_too_few_or_too_many_questions_are_refused(
    published: Published, questions: int
) -> None:
    published.record["rules"]["questions"] = questions
    with pytest.raises(UncheckableError, match="No quiz can be drawn"):
        read(published.record)


@pytest.mark.parametrize("weight", [0, -1, 1e300])
def test_invalid_weights_are_refused(published: Published, weight: float) -> None:
    published.record["rules"]["tasks"][0]["weight"] = weight
    with pytest.raises(UncheckableError, match="No quiz can be drawn"):
        read(published.record)


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "asleep"},
        {"secret": None},
        {"secret": "not hex"},
        {"commitment": "short"},
        {"rules": {}},
        {"questions": [{}] * 10},
        {"scores": "none"},
    ],
)
def test_record_of_another_shape_is_refused(published: Published, change: dict[str, Any]) -> None:
    with pytest.raises(UncheckableError, match="round cannot be read"):
        read({**published.record, **change})


@pytest.mark.parametrize(
    "raw", [b"", b"<h1>", b"[]", b"\xff", b'{"phase": "closed"', b"[" * 10_000]
)
def test_unparsable_record_is_refused(raw: bytes) -> None:
    with pytest.raises(UncheckableError, match="cannot be read"):
        read_round(raw)


def test_more_questions_than_any_round_has_are_refused(published: Published) -> None:
    published.record["questions"] *= 100
    with pytest.raises(UncheckableError, match="cannot be read"):
        read(published.record)


@pytest.mark.parametrize(
    "change",
    [
        {"text": "x" * 20_000},
        {"text": "\x00"},
        {"node": "n" * 1000},
        {"node": "\x1b[2J"},
        {"score": 2},
        {"score": math.inf},
        {"solved": "yes"},
        {"verdict": "v" * 1000},
    ],
)
def test_answer_that_no_coordinator_accepts_is_refused(
    published: Published, change: dict[str, Any]
) -> None:
    line = json.dumps({**published.answers[0], **change}).encode()
    with pytest.raises(UncheckableError, match="answers cannot be read"):
        read_answer(line)


def test_unknown_fields_from_a_newer_site_are_ignored(published: Published) -> None:
    read({**published.record, "mood": "sunny"})
    read_answer(json.dumps({**published.answers[0], "mood": "sunny"}).encode())
