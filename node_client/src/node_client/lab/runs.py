"""One run from its first round to its last, which can be killed and resumed at any time.

In the experiment's folder, the run's file `runs/ARM-SEED.part` grows by one line in each round, and
is renamed to `ARM-SEED.jsonl` when it is complete. A killed run resumes from the newest snapshot in
`snapshots/ARM-SEED/`. A snapshot is written after the lines of all rounds before it have been
flushed to disk, and it is used only if the file has all these lines.
"""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec
from filelock import FileLock, Timeout
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo

from node_client.errors import CheckpointError
from node_client.lab.config import Experiment, ExperimentArm, file_name
from node_client.lab.records import (
    RunHeader,
    UnreadableRunError,
    encode_line,
    read_run,
    sound_lines,
)
from node_client.lab.swarm import LabSwarm
from node_client.storage.durable import flush
from swarm_tasks.verifier import Verifier

SNAPSHOT_EVERY_S = 120.0


@dataclass(frozen=True)
class Run:
    """A run: an arm with a seed, in a folder."""

    folder: Path
    arm: ExperimentArm
    seed: int

    @property
    def name(self) -> str:
        """The run's name in file names."""
        return f"{file_name(self.arm.name)}-{self.seed}"

    @property
    def complete_file(self) -> Path:
        """The path of the uncompressed file of the finished run; it need not exist."""
        return self.folder / "runs" / f"{self.name}.jsonl"

    @property
    def packed_file(self) -> Path:
        """The path of the compressed file of the finished run; it need not exist."""
        return self.complete_file.with_suffix(".jsonl.gz")

    @property
    def partial_file(self) -> Path:
        """The path of the file while the run is unfinished."""
        return self.complete_file.with_suffix(".part")

    @property
    def snapshot_folder(self) -> Path:
        """The folder with the snapshots while the run is unfinished."""
        return self.folder / "snapshots" / self.name

    @property
    def finished_file(self) -> Path | None:
        """The existing file of the finished run, compressed or not; None if there is none."""
        return next(
            (path for path in (self.complete_file, self.packed_file) if path.exists()), None
        )


def is_done(experiment: Experiment, run: Run) -> bool:
    """Return whether a run is finished.

    Raises UnreadableRunError if the finished run is damaged or does not fit `experiment`.
    """
    if run.finished_file is None:
        return False
    header, _ = read_run(run.finished_file)
    if header != header_of(experiment, run):
        raise UnreadableRunError(
            f"The run {run.finished_file} was made by another design of {experiment.name}.",
            fix="Choose another folder with --out, or move the runs of that design away.",
        )
    return True


def fingerprint(experiment: Experiment) -> str:
    """Return a hash of the settings that all runs of an experiment have in common.

    It leaves out question and baseline, which may change, and seeds and arms, which may be added
    later. Defaults are omitted, so that a setting of a later version does not change the hash of
    experiments that do not use it.
    """
    common = msgspec.structs.replace(
        experiment, question="", seeds=[0], arms=[ExperimentArm(name="any")], baseline="any"
    )
    return _digest(_describe(common))


def header_of(experiment: Experiment, run: Run) -> RunHeader:
    """Return the first line of a run's file.

    Its `design` is a hash of the experiment's `fingerprint` and the settings of the run's arm.
    """
    return RunHeader(
        experiment=experiment.name,
        design=_digest([fingerprint(experiment), _describe(run.arm)]),
        arm=run.arm.name,
        seed=run.seed,
        nodes=sum(group.nodes for group in run.arm.groups) or run.arm.nodes or experiment.nodes,
        rounds=experiment.rounds,
    )


def _describe(value: object) -> object:
    """Return a value as plain data: a struct becomes a dict without fields at their default."""
    if isinstance(value, list):
        return [_describe(part) for part in value]
    if not isinstance(value, Struct):
        return value
    values = [(field, getattr(value, field.name)) for field in msgspec.structs.fields(value)]
    return {field.name: _describe(part) for field, part in values if part != _default(field)}


def _default(field: FieldInfo) -> object:
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return field.default


def _digest(description: object) -> str:
    return hashlib.sha256(msgspec.json.encode(description, order="sorted")).hexdigest()[:16]


def make_run(
    experiment: Experiment,
    run: Run,
    *,
    verifier: Verifier,
    should_continue: Callable[[int], bool] = lambda rounds_done: True,
    snapshot_every_s: float = SNAPSHOT_EVERY_S,
) -> None:
    """Complete a run, from its newest snapshot if it has one.

    Does nothing if the run is finished or another process is working on it. `should_continue` is
    called after each round with the number of finished rounds. If it returns False before the last
    round, the run takes a snapshot and stops. Raises UnreadableRunError as `is_done` does.
    """
    run.partial_file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(run.partial_file.with_suffix(".lock"), timeout=0):
            if not is_done(experiment, run):
                _make(experiment, run, verifier, should_continue, snapshot_every_s)
    except Timeout:
        return


def _make(
    experiment: Experiment,
    run: Run,
    verifier: Verifier,
    should_continue: Callable[[int], bool],
    snapshot_every_s: float,
) -> None:
    swarm, kept = _begin(experiment, run, verifier)
    with run.partial_file.open("ab") as file:
        file.truncate(kept)
        if not kept:
            file.write(encode_line(header_of(experiment, run)) + encode_line(swarm.base_scores()))
        saved_at = monotonic()
        while swarm.rounds_done < experiment.rounds:
            file.write(encode_line(swarm.run_round()))
            file.flush()
            stopping = (
                not should_continue(swarm.rounds_done) and swarm.rounds_done < experiment.rounds
            )
            if stopping or monotonic() - saved_at > snapshot_every_s:
                flush(run.partial_file)
                _take_snapshot(run, swarm)
                saved_at = monotonic()
            if stopping:
                return
    flush(run.partial_file)
    run.partial_file.rename(run.complete_file)
    shutil.rmtree(run.snapshot_folder, ignore_errors=True)


def _begin(experiment: Experiment, run: Run, verifier: Verifier) -> tuple[LabSwarm, int]:
    """Return the swarm of the newest usable snapshot, and how many bytes of the run's file to keep.

    These bytes are the lines from the header to the snapshot's round. Returns a new swarm and 0 if
    there is no usable snapshot. Removes snapshots that cannot be used.
    """
    content = run.partial_file.read_bytes() if run.partial_file.exists() else b""
    lines = sound_lines(content, header=header_of(experiment, run))
    for snapshot in sorted(run.snapshot_folder.glob("round-*"), reverse=True):
        swarm = LabSwarm(experiment, run.arm, seed=run.seed, verifier=verifier)
        with suppress(CheckpointError):
            swarm.load(snapshot)
            # The header and round 0 come before the first round.
            kept = lines[: swarm.rounds_done + 2]
            if len(kept) == swarm.rounds_done + 2:
                return swarm, sum(map(len, kept))
        shutil.rmtree(snapshot)
    return LabSwarm(experiment, run.arm, seed=run.seed, verifier=verifier), 0


def _take_snapshot(run: Run, swarm: LabSwarm) -> None:
    older = list(run.snapshot_folder.glob("round-*"))
    run.snapshot_folder.mkdir(parents=True, exist_ok=True)
    swarm.save(run.snapshot_folder / f"round-{swarm.rounds_done:06d}")
    for path in older:
        shutil.rmtree(path, ignore_errors=True)
