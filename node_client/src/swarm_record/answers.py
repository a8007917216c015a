"""Encodes answers for three uses: a node's signature, the site's receipt, and the Merkle root.

Everything is encoded as lines of text, each ended by a line feed, so that anybody can reproduce the
bytes. No field can contain a line feed, because names are slugs and hashes are hex. The encodings
contain the round's commitment. It is the hash of a random secret, so the bytes for one round of one
site are never valid for another.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from swarm_record.merkle import hash_leaf, merkle_root

_ANSWER = "murmuration-answer-1"
_RECEIPT = "murmuration-receipt-1"


@dataclass(frozen=True, order=True)
class AnswerEntry:
    """An answer in a round's record; entries are ordered by node, then position.

    `node` is the node's name. `position` is the question's number in the round, from 1, and
    `question` its id. `text_hash` is the hex SHA-256 of the text as UTF-8. `key`, the node's public
    key, and `signature` are hex, and empty if the node did not sign the answer.
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


def encode_signed_answer(entry: AnswerEntry, *, number: int, commitment: str) -> bytes:
    """Return the bytes that a node signs for its answer `entry` in the round `number`."""
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
    """Return the entry's bytes in the Merkle tree: the signed bytes, the key and the signature."""
    signed = encode_signed_answer(entry, number=number, commitment=commitment)
    return signed + _lines(entry.key, entry.signature)


def answers_root(entries: Iterable[AnswerEntry], *, number: int, commitment: str) -> str:
    """Return the hex Merkle root over a round's answers, which may be given in any order."""
    # Sorted by bytes, because Python and databases may order text differently.
    ordered = sorted(entries, key=lambda entry: (entry.node.encode(), entry.position))
    return merkle_root(encode_entry(e, number=number, commitment=commitment) for e in ordered)


def encode_signed_receipt(
    entries: Iterable[AnswerEntry], *, number: int, commitment: str, received_at: str
) -> bytes:
    """Return the bytes that the site signs as its receipt for stored answers of one node.

    The order of `entries` matters. `received_at` is when the message with the answers arrived, in
    ISO 8601.
    """
    leaves = (hash_leaf(encode_entry(e, number=number, commitment=commitment)) for e in entries)
    return _lines(_RECEIPT, str(number), commitment, received_at, *(leaf.hex() for leaf in leaves))


def _lines(*fields: str) -> bytes:
    return "".join(f"{field}\n" for field in fields).encode()
