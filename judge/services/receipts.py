"""Signed answers are checked before they are stored, and acknowledged with a signed receipt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from judge.models import SiteKey
from swarm_protocol.messages import AnswerText, ReceivedAnswer, SignedReceipt
from swarm_record.answers import AnswerEntry, hash_text, state_answer, state_receipt
from swarm_record.keys import is_signed, sign


@dataclass(frozen=True)
class Signer:
    """A node that signs: its name, and its key with the key's row."""

    node: str
    key_id: int
    public: str


@dataclass(frozen=True)
class Paper:
    """What decides which bytes are signed: the round, and its questions' places by id."""

    number: int
    commitment: str
    positions: Mapping[str, int]

    def enter(self, answer: AnswerText, signer: Signer) -> AnswerEntry:
        """Return the answer as the round's record has it."""
        return AnswerEntry(
            node=signer.node,
            position=self.positions[answer.question],
            question=answer.question,
            text_hash=hash_text(answer.text),
            key=signer.public,
            signature=answer.signature or "",
        )


def find_forged(paper: Paper, answers: Sequence[AnswerText], signer: Signer | None) -> set[str]:
    """Return the questions whose answers bear a signature that is not their node's."""
    return {
        answer.question
        for answer in answers
        if answer.signature is not None
        and answer.question in paper.positions
        and not (signer and _is_genuine(paper, answer, signer))
    }


def _is_genuine(paper: Paper, answer: AnswerText, signer: Signer) -> bool:
    stated = state_answer(
        paper.enter(answer, signer), number=paper.number, commitment=paper.commitment
    )
    return is_signed(stated, key=signer.public, signature=answer.signature or "")


def sign_receipt(
    paper: Paper, entries: Sequence[AnswerEntry], *, received_at: datetime, key: SiteKey
) -> SignedReceipt:
    """Return the site's word that it has stored these answers of a node."""
    at = received_at.astimezone(UTC).isoformat()
    stated = state_receipt(
        entries, number=paper.number, commitment=paper.commitment, received_at=at
    )
    return SignedReceipt(
        commitment=paper.commitment,
        received_at=at,
        answers=[ReceivedAnswer(entry.question, entry.position) for entry in entries],
        key=key.public,
        signature=sign(bytes(key.private), stated),
    )
