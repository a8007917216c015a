"""Signs a node's answers to the judge, and keeps the receipts that the coordinator signs."""

import logging
from collections.abc import Callable, Sequence

import msgspec

from node_client.site import Site
from node_client.storage.receipts import ReceiptLog, StoredReceipt
from swarm_protocol.messages import AnswerText, QuestionsOffered, SignedReceipt
from swarm_record.answers import AnswerEntry, encode_signed_answer, hash_text
from swarm_record.keys import public_key_of, sign

log = logging.getLogger(__name__)


class AnswerSigner:
    """Signs a node's answers with its `key`, and stores the receipts for them in `receipts`.

    `node` returns the node's name, which is empty until the coordinator's first Welcome message.
    """

    def __init__(
        self, key: bytes, *, site: Site, receipts: ReceiptLog, node: Callable[[], str]
    ) -> None:
        self._key = key
        self._public = public_key_of(key)
        self._site = site
        self._receipts = receipts
        self._node = node

    def sign(self, answers: Sequence[AnswerText], offered: QuestionsOffered) -> list[AnswerText]:
        """Return the answers with signatures.

        They stay unsigned if the round has no commitment or the node's name is not known yet.
        """
        node, judge_round = self._node(), offered.round
        if not judge_round.commitment or not node:
            return list(answers)
        positions = {
            question.id: position for position, question in enumerate(offered.questions, start=1)
        }
        return [
            msgspec.structs.replace(
                answer,
                signature=sign(
                    self._key,
                    encode_signed_answer(
                        _enter(answer, node=node, position=positions[answer.question]),
                        number=judge_round.number,
                        commitment=judge_round.commitment,
                    ),
                ),
            )
            for answer in answers
        ]

    def store_receipt(
        self, number: int, answers: Sequence[AnswerText], signed: SignedReceipt
    ) -> None:
        """Store the receipt `signed` for answers that were just submitted in round `number`.

        Drops the receipt with a warning if its signature is not valid, if it names an answer that
        is not in `answers`, or if the node's name is not known yet.
        """
        node, texts = self._node(), {answer.question: answer for answer in answers}
        if not node or any(named.question not in texts for named in signed.answers):
            log.warning("the coordinator's receipt names answers that were not submitted")
            return
        receipt = StoredReceipt(
            site=self._site.base,
            round=number,
            commitment=signed.commitment,
            received_at=signed.received_at,
            answers=[
                _enter(texts[named.question], node=node, position=named.position, key=self._public)
                for named in signed.answers
            ],
            key=signed.key,
            signature=signed.signature,
        )
        if receipt.is_genuine:
            self._receipts.append(receipt)
        else:
            log.warning("the coordinator's receipt of round %d has no valid signature", number)


def _enter(answer: AnswerText, *, node: str, position: int, key: str = "") -> AnswerEntry:
    return AnswerEntry(
        node=node,
        position=position,
        question=answer.question,
        text_hash=hash_text(answer.text),
        key=key,
        signature=answer.signature or "",
    )
