"""Signatures, Merkle roots and the hash chain: published test vectors and tampered input."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from swarm_record.answers import (
    AnswerEntry,
    answers_root,
    encode_entry,
    encode_signed_answer,
    hash_text,
)
from swarm_record.chain import (
    NOTHING,
    BrokenChainError,
    RecordLink,
    encode_link,
    follow_chain,
    hash_link,
)
from swarm_record.keys import is_signed, public_key_of, sign
from swarm_record.merkle import merkle_root

# RFC 8032, 7.1, test 1.
PRIVATE = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
SIGNATURE = (
    "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
    "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
)
ENTRY = AnswerEntry("amber", 3, "q3", hash_text("6"), PUBLIC, SIGNATURE)


def test_keys_and_signatures_match_rfc_8032() -> None:
    assert public_key_of(PRIVATE) == PUBLIC
    assert sign(PRIVATE, b"") == SIGNATURE
    assert is_signed(b"", key=PUBLIC, signature=SIGNATURE)


@pytest.mark.parametrize(
    ("message", "key", "signature"),
    [
        (b"x", PUBLIC, SIGNATURE),
        (b"", public_key_of(bytes(32)), SIGNATURE),
        (b"", PUBLIC, "00" * 64),
        (b"", "no key", SIGNATURE),
        (b"", "", ""),
    ],
)
def test_signature_with_a_wrong_part_is_rejected(message: bytes, key: str, signature: str) -> None:
    assert not is_signed(message, key=key, signature=signature)


@pytest.mark.parametrize(
    ("count", "root"),
    [
        (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
        (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
        (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
        (5, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"),
        (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
    ],
)
def test_merkle_roots_match_certificate_transparency(count: int, root: str) -> None:
    """Reference tree: https://github.com/google/certificate-transparency, merkletree tests."""
    entries = [b"", b"\x00", b"\x10", b"\x20\x21", b"\x30\x31", b"\x40\x41\x42\x43"]
    entries += [bytes(range(0x50, 0x58)), bytes(range(0x60, 0x70))]
    assert merkle_root(entries[:count]) == root


def test_answer_is_encoded_for_signing_as_documented() -> None:
    stated = encode_signed_answer(ENTRY, number=12, commitment="c0ffee")
    digest = hashlib.sha256(b"6").hexdigest()
    assert stated == f"murmuration-answer-1\n12\nc0ffee\namber\n3\nq3\n{digest}\n".encode()
    assert encode_entry(ENTRY, number=12, commitment="c0ffee") == (
        stated + f"{PUBLIC}\n{SIGNATURE}\n".encode()
    )


@pytest.mark.parametrize(
    "change",
    [
        {"node": "bold"},
        {"position": 4},
        {"question": "q4"},
        {"text_hash": hash_text("7")},
        {"key": ""},
        {"signature": ""},
    ],
)
def test_changing_any_field_of_an_answer_changes_the_root(change: dict[str, Any]) -> None:
    root = answers_root([ENTRY], number=12, commitment="c0ffee")
    changed = replace(ENTRY, **change)
    assert answers_root([changed], number=12, commitment="c0ffee") != root


def test_answers_root_is_independent_of_the_order_of_answers() -> None:
    others = [replace(ENTRY, node=node) for node in ("bold", "Zoe", "amber-2")]
    given = [ENTRY, *others]
    one, other = (
        answers_root(entries, number=1, commitment="c") for entries in (given, given[::-1])
    )
    assert one == other


def make_chain(length: int) -> list[bytes]:
    lines: list[bytes] = []
    for sequence in range(1, length + 1):
        previous = hash_link(lines[-1]) if lines else NOTHING
        at = "2026-01-01T12:00:00+00:00"
        lines.append(
            encode_link(
                RecordLink(sequence=sequence, previous=previous, at=at, kind="void", round=1)
            )
        )
    return lines


def test_follow_chain_returns_the_head_after_each_link() -> None:
    lines = make_chain(3)
    assert [linked.head for linked in follow_chain(lines)] == [hash_link(line) for line in lines]


def test_link_with_unknown_fields_is_accepted() -> None:
    [line] = make_chain(1)
    newer = line.replace(b"{", b'{"colour":"red",', 1)
    [linked] = follow_chain([newer])
    assert linked.head == hash_link(newer)


@pytest.mark.parametrize(
    ("tamper", "where"),
    [
        (lambda lines: [lines[0], lines[1].replace(b'"round":1', b'"round":2'), lines[2]], "3"),
        (lambda lines: [lines[0], lines[2]], "2"),
        (lambda lines: [lines[1], lines[0], lines[2]], "1"),
        (lambda lines: [lines[0], b"{}", lines[2]], "2"),
    ],
)
def test_tampered_chain_is_rejected_at_the_broken_link(tamper: Any, where: str) -> None:
    with pytest.raises(BrokenChainError, match=f"link {where} "):
        list(follow_chain(tamper(make_chain(3))))


@pytest.mark.parametrize(
    "key",
    [
        "01" + 31 * "00",
        "01" + 30 * "00" + "80",
        "ee" + 30 * "ff" + "7f",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    ],
)
def test_key_for_which_one_signature_fits_many_messages_is_invalid(key: str) -> None:
    signature = "01" + 63 * "00"
    messages = [b"%d" % number for number in range(64)]
    assert not any(is_signed(message, key=key, signature=signature) for message in messages)
