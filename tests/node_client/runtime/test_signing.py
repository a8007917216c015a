from pathlib import Path

import msgspec
import pytest

from node_client.runtime.signing import AnswerSigner
from node_client.site import Site
from node_client.storage.receipts import ReceiptLog, find_receipts
from swarm_protocol.messages import (
    AnswerText,
    OfferedQuestion,
    QuestionsOffered,
    ReceivedAnswer,
    SignedReceipt,
)
from swarm_record.answers import AnswerEntry, encode_signed_answer, hash_text
from swarm_record.keys import is_signed, make_key, public_key_of
from tests.node_client.coordinator import now, open_round

SITE, PRIVATE = Site("https://swarm.org"), make_key()
ANSWERS = [AnswerText("q2", "2", "stop")]


def offer(commitment: str) -> QuestionsOffered:
    questions = [OfferedQuestion(f"q{place}", "chain_sum", "1 + 1 = ?") for place in (1, 2)]
    round_info = open_round(12, commitment=commitment)
    return QuestionsOffered(None, round_info, 8, 0.0, now(), questions)


@pytest.fixture
def signing(tmp_path: Path) -> AnswerSigner:
    return AnswerSigner(
        PRIVATE, site=SITE, receipts=ReceiptLog(tmp_path / "r"), node=lambda: "amber"
    )


def test_answer_is_signed_with_the_place_of_its_question(signing: AnswerSigner) -> None:
    [signed] = signing.sign(ANSWERS, offer("c0ffee"))
    entry = AnswerEntry("amber", 2, "q2", hash_text("2"))
    stated = encode_signed_answer(entry, number=12, commitment="c0ffee")
    assert is_signed(stated, key=public_key_of(PRIVATE), signature=signed.signature or "")


def test_nothing_is_signed_without_a_commitment(signing: AnswerSigner) -> None:
    assert signing.sign(ANSWERS, offer("")) == ANSWERS


@pytest.mark.parametrize("question", ["q2", "q9"])
def test_receipt_not_signed_by_the_coordinator_is_not_stored(
    signing: AnswerSigner, tmp_path: Path, caplog: pytest.LogCaptureFixture, question: str
) -> None:
    unsigned = SignedReceipt("c0ffee", "now", [ReceivedAnswer(question, 2)], "d7" * 32, "e5" * 64)
    signing.store_receipt(12, [msgspec.structs.replace(ANSWERS[0], signature="ab" * 64)], unsigned)
    assert find_receipts(tmp_path / "r", site=SITE, number=12) == []
    assert "receipt" in caplog.text
