"""One hash of many entries: the Merkle tree of RFC 6962, section 2.1, with SHA-256.

Leaves and inner nodes are hashed with different first bytes, so neither can pass for the other.
"""

import hashlib
from collections.abc import Iterable


def hash_leaf(entry: bytes) -> bytes:
    """Return the hash of one entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def merkle_root(entries: Iterable[bytes]) -> str:
    """Return the root over entries, in their order, as hex; without any it is SHA-256 of nothing.

    A node that has no sibling goes up as it is, which gives RFC 6962's tree for any number.
    """
    return join_leaves([hash_leaf(entry) for entry in entries])


def join_leaves(level: list[bytes]) -> str:
    """Return the root over the hashes of entries."""
    if not level:
        return hashlib.sha256(b"").hexdigest()
    while len(level) > 1:
        paired = [
            hashlib.sha256(b"\x01" + left + right).digest()
            for left, right in zip(level[::2], level[1::2], strict=False)
        ]
        level = paired + level[len(paired) * 2 :]
    return level[0].hex()
