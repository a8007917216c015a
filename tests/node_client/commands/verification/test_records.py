import json
import math
from typing import Any

import pytest

from node_client.commands.verification.records import MAX_QUESTIONS, read_answer, read_round
from node_client.errors import UncheckableError
from tests.node_client.commands.verification.rounds import Published


def read(record: dict[str, Any]) -> None:
    read_round(json.dumps(record).encode())


def test_questions_come_in_their_order(published: Published) -> None:
    published.record["questions"].reverse()
    assert [question.position for question in published.round.questions] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("phase", ["scheduled", "open", "scoring"])
def test_a_round_that_is_not_over_is_still_sealed(phase: str) -> None:
    record = {"phase": phase, "commitment": "c0ffee", "secret": None, "rules": None}
    with pytest.raises(UncheckableError, match=f"{phase}: its questions are still sealed") as told:
        read(record)
    assert "when it has closed" in told.value.fix


def test_a_void_round_counts_for_nobody() -> None:
    with pytest.raises(UncheckableError, match="voided"):
        read({"phase": "void"})


@pytest.mark.parametrize("record", [{"phase": "closed"}, {"phase": "closed", "commitment": ""}])
def test_a_round_from_before_commitments_cannot_be_checked(record: dict[str, Any]) -> None:
    with pytest.raises(UncheckableError, match="before rounds had commitments"):
        read(record)


def test_another_version_of_the_generator_asks_for_another_client(published: Published) -> None:
    published.record["rules"]["generator"] = "reasoning-gym 9.9.9"
    with pytest.raises(UncheckableError, match=r"9\.9\.9") as told:
        read(published.record)
    assert "join page" in told.value.fix


def test_another_way_to_draw_asks_for_another_client(published: Published) -> None:
    published.record["rules"]["format"] = "murmuration-quiz-9"
    with pytest.raises(UncheckableError, match="murmuration-quiz-9") as told:
        read(published.record)
    assert "join page" in told.value.fix


def test_another_way_to_read_answers_asks_for_another_client(published: Published) -> None:
    published.record["rules"]["answers"] = "answers-9"
    with pytest.raises(UncheckableError, match="answers-9") as told:
        read(published.record)
    assert "join page" in told.value.fix


@pytest.mark.parametrize("questions", [0, 1, MAX_QUESTIONS + 1, 10**9])
def test_rules_for_too_few_or_too_many_questions_are_refused(
    published: Published, questions: int
) -> None:
    published.record["rules"]["questions"] = questions
    with pytest.raises(UncheckableError, match="No quiz can be drawn"):
        read(published.record)


@pytest.mark.parametrize("weight", [0, -1, 1e300])
def test_weights_that_share_nothing_out_are_refused(published: Published, weight: float) -> None:
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
def test_a_record_of_another_shape_is_not_believed(
    published: Published, change: dict[str, Any]
) -> None:
    with pytest.raises(UncheckableError, match="round cannot be read"):
        read({**published.record, **change})


@pytest.mark.parametrize(
    "raw", [b"", b"<h1>", b"[]", b"\xff", b'{"phase": "closed"', b"[" * 10_000]
)
def test_what_is_no_record_at_all_is_explained(raw: bytes) -> None:
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
def test_an_answer_that_no_coordinator_takes_is_refused(
    published: Published, change: dict[str, Any]
) -> None:
    line = json.dumps({**published.answers[0], **change}).encode()
    with pytest.raises(UncheckableError, match="answers cannot be read"):
        read_answer(line)


def test_what_a_newer_site_says_besides_is_skipped(published: Published) -> None:
    read({**published.record, "mood": "sunny"})
    read_answer(json.dumps({**published.answers[0], "mood": "sunny"}).encode())
