"""The file of a run: a header and one record for each round, as lines of JSON.

It contains no time stamps or machine names, so the same run gives the same bytes. Every figure of a
report is computed from these lines.
"""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from node_client.errors import NodeError
from node_client.settings.ranges import Natural, NotNegative, Share
from node_client.storage.durable import flush

RERUN_FIX = "Remove the file, and run the experiment again: the other runs are kept."


class RunHeader(Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="run"):
    """The first line of a run's file, which identifies the run.

    `design` is a hash of the settings of the experiment and the arm (`lab.runs.header_of`).
    """

    experiment: str
    design: str
    arm: str
    seed: int
    nodes: int
    rounds: int


class RoundRecord(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="round",
):
    """The measurements of one round.

    Each list has one number for each training node, in order, or is empty if the value was not
    measured:

    - `reward`: the mean over the completions of the node's own rollouts, before the update.
    - `informative`: the share of own rollouts that are informative.
    - `set_reward`, `set_informative`: mean reward and informative share of the training set.
    - `generated`: the number of own rollouts; `tokens`: the number of generated tokens.
    - `external`: the number of external rollouts in the training set.
    - `sent`, `received`: the bytes of the rollouts that the node published and drew.
    - `length`: the mean number of tokens in an own completion.
    - `clip`: the share of trained tokens whose gradient was clipped.
    - `held_out`: pass@1 on the held-out set after the round, if an evaluation was due. The record
      of round 0 has only this list: the scores of the base models.
    - `poisoned`: the share of own completions that contain an attacker's planted text.
    - `recheck`, `hesitation`, `exploration`: the share of own completions with the pattern of
      this name (`learning.reflection`); `reflection`: the largest of the three shares. Runs of
      earlier versions have only `reflection`.
    """

    round: Natural
    reward: list[Share] = []
    informative: list[Share] = []
    set_reward: list[Share] = []
    set_informative: list[Share] = []
    generated: list[Natural] = []
    external: list[Natural] = []
    tokens: list[Natural] = []
    sent: list[Natural] = []
    received: list[Natural] = []
    length: list[NotNegative] = []
    clip: list[Share] = []
    held_out: list[Share] = []
    poisoned: list[Share] = []
    reflection: list[Share] = []
    recheck: list[Share] = []
    hesitation: list[Share] = []
    exploration: list[Share] = []


class UnreadableRunError(NodeError):
    """A run's file is damaged, does not fit the experiment, or lacks what a report needs."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RunHeader | RoundRecord)


def encode_line(record: RunHeader | RoundRecord) -> bytes:
    """Return a record as one line of JSON."""
    return _encoder.encode(record) + b"\n"


def sound_lines(content: bytes, *, header: RunHeader) -> list[bytes]:
    """Return the lines of an unfinished run's file before the first invalid one.

    Line 1 must be `header`. The lines after it must be the records of rounds 0, 1, 2, …, without
    gaps; a line without a line break at its end is invalid.
    """
    first = encode_line(header)
    sound: list[bytes] = []
    for number, line in enumerate(content.splitlines(keepends=True), start=-1):
        if line != first if number < 0 else not _is_round(line, number):
            break
        sound.append(line)
    return sound


def read_run(path: Path) -> tuple[RunHeader, list[RoundRecord]]:
    """Read a run's header and rounds from a file, compressed or not.

    Raises UnreadableRunError if the file is missing, or is not a header followed by rounds.
    """
    try:
        first, *rest = _read_lines(path)
    except (OSError, EOFError, ValueError, zlib.error, msgspec.MsgspecError) as problem:
        raise UnreadableRunError(
            f"The run {path} cannot be read: {problem}.", fix=RERUN_FIX
        ) from problem
    rounds = [record for record in rest if isinstance(record, RoundRecord)]
    if not isinstance(first, RunHeader) or len(rounds) < len(rest):
        raise UnreadableRunError(f"The run {path} does not begin with its header.", fix=RERUN_FIX)
    return first, rounds


def _read_lines(path: Path) -> Iterator[RunHeader | RoundRecord]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    for line in content.splitlines():
        yield _decoder.decode(line)


def _is_round(line: bytes, number: int) -> bool:
    try:
        record = _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False
    return line.endswith(b"\n") and isinstance(record, RoundRecord) and record.round == number


def pack_runs(folder: Path) -> list[Path]:
    """Compress the files of finished runs in an experiment's folder, and return the new files.

    The new files replace the uncompressed ones. They contain no time stamp and no file name, so the
    same run gives the same bytes.
    """
    packed = []
    for whole in sorted((folder / "runs").glob("*.jsonl")):
        small = whole.with_suffix(".jsonl.gz")
        draft = small.with_suffix(".partial")
        draft.write_bytes(gzip.compress(whole.read_bytes(), 9, mtime=0))
        flush(draft)
        draft.rename(small)
        whole.unlink()
        whole.with_suffix(".lock").unlink(missing_ok=True)
        packed.append(small)
    return packed
