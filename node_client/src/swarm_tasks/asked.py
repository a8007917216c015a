"""A hash chain that commits a round to all questions asked earlier in its season; no I/O.

A question is identified by its digest, the first eight bytes of the SHA-256 of its text, whatever
its index. A round's entry is a hash of a seal and the digests of the round's questions. The seal is
derived from the round's secret, so nobody can test guesses of sealed questions against the entry.
The rules of a round contain the newest hash of a chain over the entries of all earlier rounds, so
the earlier questions cannot be changed once the rules are committed to.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable, Collection, Iterable, Sequence

DIGEST_BYTES = 8
# The chain before a season's first round.
NOTHING_ASKED = "0" * 64

# A function that gets digests and returns the ones that the season asked in earlier rounds.
Seen = Callable[[Sequence[int]], Collection[int]]


def digest_question(question: str) -> int:
    """Return a question's digest: the first eight bytes of the SHA-256 of its text.

    The bytes are read as a signed big-endian integer, because databases store it as such.
    """
    first = hashlib.sha256(question.encode()).digest()[:DIGEST_BYTES]
    return int.from_bytes(first, "big", signed=True)


def encode_digests(digests: Sequence[int]) -> bytes:
    """Return the digests one after another, eight bytes each, most significant byte first."""
    return struct.pack(f">{len(digests)}q", *digests)


def decode_digests(raw: bytes) -> tuple[int, ...]:
    """Undo `encode_digests`. Raises ValueError if the length is not a multiple of eight bytes."""
    count, rest = divmod(len(raw), DIGEST_BYTES)
    if rest:
        raise ValueError(f"{len(raw)} bytes are not a whole number of digests")
    return struct.unpack(f">{count}q", raw)


def seal_of(secret: bytes) -> bytes:
    """Return a round's seal: an HMAC-SHA256 of a fixed text, with the round's secret as the key.

    `entry_of` hashes the seal with the questions' digests. The seal does not reveal the secret.
    """
    return hmac.digest(secret, b"asked", "sha256")


def entry_of(digests: Sequence[int], *, seal: bytes) -> bytes:
    """Return a round's entry for `extend_chain`: SHA-256 of its seal and its questions' digests."""
    return hashlib.sha256(seal + encode_digests(digests)).digest()


def extend_chain(asked: str, entries: Iterable[bytes]) -> str:
    """Append entries, oldest first, to a chain, and return its newest hash as 64 hex digits.

    `asked` is the newest hash before the entries, NOTHING_ASKED for an empty chain. Each new hash
    is the SHA-256 of the previous hash and an entry.
    """
    link = bytes.fromhex(asked)
    for entry in entries:
        link = hashlib.sha256(link + entry).digest()
    return link.hex()
