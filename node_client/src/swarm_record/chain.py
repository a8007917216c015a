"""A site's public hash chain; each link contains the hash of the previous one.

A link is a line of canonical JSON (names sorted, no spaces, fields without a value omitted), and
its hash is SHA-256 of the line without the line feed. So anybody who knows the hash of one link can
tell whether anything before it was changed, removed or inserted.
"""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

# What the first link has in place of the hash of a previous link.
NOTHING = "0" * 64
MAX_LINE_BYTES = 1 << 16
_HEAD = "murmuration-head-1"


class RecordLink(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One recorded event. The table has the fields that are set for each `kind` of event.

    began       `key` (the site's), `round` (the last before the chain), `nodes` (quarantined)
    key         `key` (the site's new one), `signature` (of `encode_signed_key`, by the old key)
    scheduled   `round`, `season`, `commitment`; recorded before anybody can answer
    withdrawn   `round` (its season ended before the round opened)
    answered    `round`, `root` (over its `count` answers); recorded when nobody can answer any more
    closed      `round`, `secret`, `results` (the root over the round's `count` scores)
    void        `round`, `reason`, and `secret` if the round's rules name a public beacon
    recomputed  `round`, `results` (the new root over the round's `count` scores), `reason`
    quarantined, released   `node`, `reason`
    unsealed    `round` (the operator read its sealed questions), `reason`
    restored    `round` (the last one in the restored backup), `reason`
    """

    sequence: int
    previous: str
    at: str
    kind: str
    round: int = 0
    season: str = ""
    commitment: str = ""
    root: str = ""
    results: str = ""
    secret: str = ""
    count: int = 0
    node: str = ""
    nodes: list[str] = []
    key: str = ""
    signature: str = ""
    reason: str = ""


class BrokenChainError(Exception):
    """The lines are not a valid chain; the message names the first bad link."""


class HashedLink(Struct, frozen=True):
    """A link and its hash."""

    link: RecordLink
    head: str


_decoder = msgspec.json.Decoder(RecordLink)


def encode_link(link: RecordLink) -> bytes:
    """Return a link's line, without its line feed."""
    return msgspec.json.encode(link, order="sorted")


def hash_link(line: bytes) -> str:
    """Return the SHA-256 of a link's line, in hex."""
    return hashlib.sha256(line).hexdigest()


def follow_chain(lines: Iterable[bytes]) -> Iterator[HashedLink]:
    """Yield the link of each line, with its hash. `lines` begins with the first link of the chain.

    Raises BrokenChainError at the first line that is not a valid link: it cannot be read, has a
    wrong number, or does not contain the hash of the line before. Kinds and fields that only newer
    versions know are accepted. A link's hash covers its whole line, unknown fields included.
    """
    previous, sequence = NOTHING, 0
    for sequence, line in enumerate(lines, start=1):
        try:
            link = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise BrokenChainError(f"link {sequence} cannot be read") from None
        if link.sequence != sequence:
            raise BrokenChainError(f"link {sequence} calls itself {link.sequence}")
        if link.previous != previous:
            raise BrokenChainError(f"link {sequence} does not follow the one before it")
        previous = hash_link(line)
        yield HashedLink(link, previous)


def encode_signed_head(*, sequence: int, head: str) -> bytes:
    """Return the bytes that the site signs to confirm the newest link of its chain.

    `sequence` is the newest link's number, and `head` is its hash.
    """
    return f"{_HEAD}\n{sequence}\n{head}\n".encode()


def encode_signed_key(key: str) -> bytes:
    """Return the bytes that the site signs with its old key to confirm its new key, `key`."""
    return f"murmuration-key-1\n{key}\n".encode()
