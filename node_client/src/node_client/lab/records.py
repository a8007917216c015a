"""The file of a run: one line of JSON for each round.

It contains no time and no name of a machine, so that the same run gives the same bytes. Every
figure of a report is computed from these lines.
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

    `design` is a fingerprint of the experiment and the arm (`lab.runs.header_of`).
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
    """One round. A list has one number for each training node, in order; empty if not measured.

    `reward` is the mean over the completions of a node's own rollouts, taken before the update, and
    `informative` the share of its own rollouts that are informative; `set_reward` and
    `set_informative` are the same for the training set. `generated` is the number of own rollouts,
    `external` the number of external rollouts in the training set, and `tokens` the number of
    generated tokens; `sent` and `received` are bytes. `length` is the mean number of tokens in a
    completion, `clip` the share of trained tokens whose gradient was clipped. `held_out` is pass@1
    on the held-out set, if there was an evaluation; round 0 has the scores of the bases and nothing
    else. `poisoned` is the share of own completions with the text planted by an attacker.
    `recheck`, `hesitation` and `exploration` are the shares with each pattern of
    `learning.reflection`, and `reflection` is the largest of the three. Runs of earlier versions
    have only `reflection`.
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
    """A run's file is damaged, of another design, or without what a report needs."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(RunHeader | RoundRecord)


def encode_line(record: RunHeader | RoundRecord) -> bytes:
    """Return a record as one line of JSON."""
    return _encoder.encode(record) + b"\n"


def sound_lines(content: bytes, *, header: RunHeader) -> list[bytes]:
    """Return the lines of an unfinished run's file up to the first invalid one.

    The first must be `header` (if it is not, no line is returned), the others rounds 0, 1, 2, ….
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
    except msgspec.MsgspecError:
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
