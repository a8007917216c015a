"""What a node signs of an answer, what the site signs of having it, and what the root is over.

All of it is lines of text, each ended by a line feed, so that anybody can make the same bytes: no
field can hold a line feed, because names are slugs and hashes are hex. The commitment, a hash of a
secret that was drawn once, tells sites and rounds apart.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from swarm_record.merkle import hash_leaf, merkle_root

_ANSWER = "murmuration-answer-1"
_RECEIPT = "murmuration-receipt-1"


@dataclass(frozen=True, order=True)
class AnswerEntry:
    """An answer in a round's record; entries stand in the order of node, then position.

    `position` counts the round's questions from 1, `text_hash` is SHA-256 of the text as UTF-8, in
    hex. `key` and `signature` are empty for an answer that its node did not sign.
    """

    node: str
    position: int
    question: str
    text_hash: str
    key: str = ""
    signature: str = ""


def hash_text(text: str) -> str:
    """Return the SHA-256 of an answer's text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def state_answer(entry: AnswerEntry, *, number: int, commitment: str) -> bytes:
    """Return what the node signs: this answer to this question of this round."""
    return _lines(
        _ANSWER,
        str(number),
        commitment,
        entry.node,
        str(entry.position),
        entry.question,
        entry.text_hash,
    )


def encode_entry(entry: AnswerEntry, *, number: int, commitment: str) -> bytes:
    """Return the entry as the Merkle tree has it: what was signed, the key and the signature."""
    stated = state_answer(entry, number=number, commitment=commitment)
    return stated + _lines(entry.key, entry.signature)


def answers_root(entries: Iterable[AnswerEntry], *, number: int, commitment: str) -> str:
    """Return the Merkle root over all answers of a round, in whatever order they come."""
    # By bytes, since Python's and a database's orders of texts may differ.
    ordered = sorted(entries, key=lambda entry: (entry.node.encode(), entry.position))
    return merkle_root(encode_entry(e, number=number, commitment=commitment) for e in ordered)


def state_receipt(
    entries: Iterable[AnswerEntry], *, number: int, commitment: str, received_at: str
) -> bytes:
    """Return what the site signs when it has stored these answers of a node, in their order."""
    leaves = (hash_leaf(encode_entry(e, number=number, commitment=commitment)) for e in entries)
    return _lines(_RECEIPT, str(number), commitment, received_at, *(leaf.hex() for leaf in leaves))


def _lines(*fields: str) -> bytes:
    return "".join(f"{field}\n" for field in fields).encode()
