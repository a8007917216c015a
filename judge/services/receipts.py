"""Verifies signed answers before they are stored, and signs receipts for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from judge.models import SiteKey
from swarm_protocol.messages import AnswerText, ReceivedAnswer, SignedReceipt
from swarm_record.answers import AnswerEntry, encode_signed_answer, encode_signed_receipt, hash_text
from swarm_record.keys import is_signed, sign


@dataclass(frozen=True)
class Signer:
    """A node that signs its answers: its name, and its public key with the key's id."""

    node: str
    key_id: int
    public: str


@dataclass(frozen=True)
class SigningContext:
    """A round's data, needed to check the signatures of its answers and to sign receipts.

    `positions` maps the id of each question of the round to its position.
    """

    number: int
    commitment: str
    positions: Mapping[str, int]

    def make_entry(self, answer: AnswerText, signer: Signer) -> AnswerEntry:
        """Return the answer's entry in the public record of the round's answers."""
        return AnswerEntry(
            node=signer.node,
            position=self.positions[answer.question],
            question=answer.question,
            text_hash=hash_text(answer.text),
            key=signer.public,
            signature=answer.signature or "",
        )


def find_forged(
    context: SigningContext, answers: Sequence[AnswerText], signer: Signer | None
) -> set[str]:
    """Return the ids of questions whose answers have a signature that is not the node's own.

    If `signer` is None, the node has no key, so every signature is forged. Unsigned answers, and
    answers to questions of other rounds, are ignored.
    """
    return {
        answer.question
        for answer in answers
        if answer.signature is not None
        and answer.question in context.positions
        and not (signer and _is_genuine(context, answer, signer))
    }


def _is_genuine(context: SigningContext, answer: AnswerText, signer: Signer) -> bool:
    signed = encode_signed_answer(
        context.make_entry(answer, signer), number=context.number, commitment=context.commitment
    )
    return is_signed(signed, key=signer.public, signature=answer.signature or "")


def sign_receipt(
    context: SigningContext, entries: Sequence[AnswerEntry], *, received_at: datetime, key: SiteKey
) -> SignedReceipt:
    """Return the site's signed receipt for these stored answers of a node."""
    at = received_at.astimezone(UTC).isoformat()
    signed = encode_signed_receipt(
        entries, number=context.number, commitment=context.commitment, received_at=at
    )
    return SignedReceipt(
        commitment=context.commitment,
        received_at=at,
        answers=[ReceivedAnswer(entry.question, entry.position) for entry in entries],
        key=key.public,
        signature=sign(bytes(key.private), signed),
    )
