"""What a season asked already, and how a round is bound to it; no I/O.

A question is known by its digest, the first eight bytes of the SHA-256 of its text, so it is the
same question under every index. A round's entry hashes its digests behind a seal that follows from
its secret, so that nobody can guess sealed questions from it. The rules of the next round hold the
chain of all entries before it: what was asked is fixed before anybody answers.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable, Collection, Iterable, Sequence

DIGEST_BYTES = 8
# The chain before a season's first round.
NOTHING_ASKED = "0" * 64

# Tells which of these digests the season asked in earlier rounds.
Seen = Callable[[Sequence[int]], Collection[int]]


def digest_question(question: str) -> int:
    """Return a question's digest as a signed integer of eight bytes, as databases store it."""
    first = hashlib.sha256(question.encode()).digest()[:DIGEST_BYTES]
    return int.from_bytes(first, "big", signed=True)


def encode_digests(digests: Sequence[int]) -> bytes:
    """Return the digests one behind the other, eight bytes each, in network order."""
    return struct.pack(f">{len(digests)}q", *digests)


def decode_digests(raw: bytes) -> tuple[int, ...]:
    """Return the digests of `encode_digests`. Raises ValueError for bytes left over."""
    count, rest = divmod(len(raw), DIGEST_BYTES)
    if rest:
        raise ValueError(f"{len(raw)} bytes are no whole number of digests")
    return struct.unpack(f">{count}q", raw)


def seal_of(secret: bytes) -> bytes:
    """Return what hides a round's digests in its entry; it tells nothing about the secret."""
    return hmac.digest(secret, b"asked", "sha256")


def entry_of(digests: Sequence[int], *, seal: bytes) -> bytes:
    """Return a round's entry in the chain: SHA-256 of the seal and the digests in order."""
    return hashlib.sha256(seal + encode_digests(digests)).digest()


def extend_chain(asked: str, entries: Iterable[bytes]) -> str:
    """Return the chain after further entries: SHA-256 of what it was and the entry, in hex."""
    link = bytes.fromhex(asked)
    for entry in entries:
        link = hashlib.sha256(link + entry).digest()
    return link.hex()
