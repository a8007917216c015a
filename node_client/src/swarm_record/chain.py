"""The chain of all that a site fixed, link by link; each names the hash of the one before.

A link is a line of canonical JSON (names sorted, no spaces, fields without a value left out), and
its hash is SHA-256 of the line without the line feed. So whoever knows the hash of one link knows
whether anything before it was changed, taken out or put in.
"""

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Struct

# What the first link names as the one before.
NOTHING = "0" * 64
MAX_LINE_BYTES = 1 << 16
_HEAD = "murmuration-head-1"


class Link(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One thing that was fixed; `kind` says what, and which of the fields it has.

    began       `key` of the site, `round`: the last one before, `nodes`: quarantined by then
    key         `key`: a new one of the site, `signature` of the `state_key` by the one before
    scheduled   `round`, `season`, `commitment`: before anybody could answer
    withdrawn   `round`: its season ended before it opened
    answered    `round`, `root` over all `count` answers: when nobody could answer any more
    closed      `round`, `secret`, `results`: the root over its `count` scores, and `at`: when
    void        `round`, `reason`; `secret` if its rules name a public beacon
    recomputed  `round`, `results`: the new root, `reason`
    quarantined, released   `node`, `reason`
    unsealed    `round`, `reason`: the operator read its sealed questions
    restored    `round`: the last one that a backup had, `reason`
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
    """The lines are no chain; the message says from which on."""


class Linked(Struct, frozen=True):
    """A link and its hash."""

    link: Link
    head: str


_decoder = msgspec.json.Decoder(Link)


def encode_link(link: Link) -> bytes:
    """Return a link's line, without its line feed."""
    return msgspec.json.encode(link, order="sorted")


def hash_link(line: bytes) -> str:
    """Return the hash of a link's line, in hex."""
    return hashlib.sha256(line).hexdigest()


def follow_chain(lines: Iterable[bytes]) -> Iterator[Linked]:
    """Yield all links, from the first on. Raises BrokenChainError at one that does not follow.

    Kinds and fields of a newer version are passed over, and are hashed all the same.
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
        yield Linked(link, previous)


def state_head(*, sequence: int, head: str) -> bytes:
    """Return what the site signs of its newest link."""
    return f"{_HEAD}\n{sequence}\n{head}\n".encode()


def state_key(key: str) -> bytes:
    """Return what the site's old key signs of the new one."""
    return f"murmuration-key-1\n{key}\n".encode()
