"""A run's file is read completely, or refused by its name."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from node_client.lab.records import (
    RoundRecord,
    RunHeader,
    UnreadableRunError,
    encode_line,
    read_run,
    sound_lines,
)

HEADER = RunHeader(experiment="small", design="abc", arm="4/4", seed=1, nodes=2, rounds=2)
ROUNDS = [RoundRecord(round=number, reward=[0.1 * number]) for number in range(3)]
LINES = [encode_line(HEADER), *map(encode_line, ROUNDS)]
WHOLE = b"".join(LINES)


def torn(content: bytes) -> bytes:
    return content[:-20]


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes(255 - byte for byte in content[middle:])


@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", WHOLE), ("a.jsonl.gz", gzip.compress(WHOLE))]
)
def test_run_is_read_as_it_was_written(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert read_run(path) == (HEADER, ROUNDS)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", b""),
        ("a.jsonl", torn(WHOLE)),
        ("a.jsonl", flipped(WHOLE)),
        ("a.jsonl", b"".join(LINES[1:])),
        ("a.jsonl", WHOLE + LINES[0]),
        ("a.jsonl", LINES[0] + b'{"kind":"round","round":0,"rewards":[1]}\n'),
        ("a.jsonl.gz", WHOLE),
        ("a.jsonl.gz", torn(gzip.compress(WHOLE))),
        ("a.jsonl.gz", flipped(gzip.compress(WHOLE))),
    ],
    ids=[
        "empty",
        "torn",
        "flipped",
        "headless",
        "two",
        "unknown",
        "plain",
        "torn gz",
        "flipped gz",
    ],
)
def test_damaged_run_is_refused_by_its_name(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableRunError, match=str(path)):
        read_run(path)


def test_missing_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadableRunError, match="cannot be read"):
        read_run(tmp_path / "none.jsonl")


OTHER = RunHeader(experiment="small", design="other", arm="4/4", seed=1, nodes=2, rounds=2)


@pytest.mark.parametrize(
    ("damage", "sound"),
    [
        (lambda lines: lines, 4),
        (lambda lines: [], 0),
        (lambda lines: lines[1:], 0),
        (lambda lines: [encode_line(OTHER), *lines[1:]], 0),
        (lambda lines: [*lines[:3], lines[3][:-1]], 3),
        (lambda lines: [*lines[:2], b"\0" * 40 + b"\n", lines[3]], 2),
        (lambda lines: [*lines[:2], lines[2].replace(b"reward", b"rew\xffrd"), lines[3]], 2),
        (lambda lines: [*lines[:2], lines[3]], 2),
        (lambda lines: [lines[0], lines[0]], 1),
    ],
)
def test_lines_of_an_unfinished_run_count_up_to_the_first_damaged_one(
    damage: Callable[[list[bytes]], list[bytes]], sound: int
) -> None:
    assert sound_lines(b"".join(damage(LINES)), header=HEADER) == LINES[:sound]
