"""The Merkle tree of RFC 6962, section 2.1, with SHA-256.

Leaves and inner nodes are hashed with different prefixes, so one cannot be mistaken for the other.
"""

import hashlib
from collections.abc import Iterable


def hash_leaf(entry: bytes) -> bytes:
    """Return the hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def merkle_root(entries: Iterable[bytes]) -> str:
    """Return the Merkle root of the entries, in hex. Their order matters.

    Without entries, the root is the SHA-256 of no bytes. If a level of the tree has an odd number
    of hashes, the last one moves up to the next level unchanged. This gives RFC 6962's tree for any
    number of entries.
    """
    return join_leaves([hash_leaf(entry) for entry in entries])


def join_leaves(level: list[bytes]) -> str:
    """Return the `merkle_root` of entries, given their hashes (`hash_leaf`) in order."""
    if not level:
        return hashlib.sha256(b"").hexdigest()
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()
