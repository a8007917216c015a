"""One run from its first round to its last, which can be killed and gone on with at any time.

In the experiment's folder, `runs/ARM-SEED.jsonl` grows round by round as `.part` and is renamed
when it is whole. `snapshots/ARM-SEED/` has what a killed run goes on from.
"""

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import msgspec
from filelock import FileLock, Timeout

from node_client.lab.config import Arm, Experiment
from node_client.lab.records import RunHeader, encode_line
from node_client.lab.swarm import LabSwarm
from node_client.storage.durable import flush
from swarm_tasks.verifier import Verifier

SNAPSHOT_EVERY_S = 120.0


@dataclass(frozen=True)
class Run:
    """Which run: an arm with a seed, in a folder."""

    folder: Path
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        """The run's name in file names."""
        return f"{re.sub(r'[^A-Za-z0-9.]+', '-', self.arm.name)}-{self.seed}"

    @property
    def whole(self) -> Path:
        """The file of a run that was finished."""
        return self.folder / "runs" / f"{self.name}.jsonl"

    @property
    def part(self) -> Path:
        """The file of a run that is under way."""
        return self.whole.with_suffix(".part")

    @property
    def snapshots(self) -> Path:
        """Where a run that is under way can be gone on with."""
        return self.folder / "snapshots" / self.name

    @property
    def is_done(self) -> bool:
        """Whether the run was finished, its file compressed or not."""
        return self.whole.exists() or self.whole.with_suffix(".jsonl.gz").exists()


def fingerprint(experiment: Experiment) -> str:
    """Return a hash of all that decides a run's numbers, but for its arm and seed.

    Seeds and arms may be added to an experiment later; what its runs have in common may not change.
    """
    common = msgspec.structs.replace(experiment, seeds=[0], arms=[Arm(name="any")], baseline="any")
    return hashlib.sha256(msgspec.json.encode(common, order="sorted")).hexdigest()[:16]


def header_of(experiment: Experiment, run: Run) -> RunHeader:
    """Return the first line of a run's file; its design covers the run's own arm."""
    design = fingerprint(experiment).encode() + msgspec.json.encode(run.arm, order="sorted")
    return RunHeader(
        experiment=experiment.name,
        design=hashlib.sha256(design).hexdigest()[:16],
        arm=run.arm.name,
        seed=run.seed,
        nodes=sum(group.nodes for group in run.arm.groups) or run.arm.nodes or experiment.nodes,
        rounds=experiment.rounds,
    )


def make_run(
    experiment: Experiment,
    run: Run,
    *,
    verifier: Verifier,
    goes_on: Callable[[], bool] = lambda: True,
    snapshot_every_s: float = SNAPSHOT_EVERY_S,
) -> None:
    """Make a run, or what is left of it. Another process that is at the same run is left alone.

    `goes_on` is asked after each round; when it says no, the run stops at a snapshot.
    """
    run.part.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(run.part.with_suffix(".lock"), timeout=0):
            if not run.is_done:
                _make(experiment, run, verifier, goes_on, snapshot_every_s)
    except Timeout:
        return


def _make(
    experiment: Experiment,
    run: Run,
    verifier: Verifier,
    goes_on: Callable[[], bool],
    snapshot_every_s: float,
) -> None:
    swarm = LabSwarm(experiment, run.arm, seed=run.seed, verifier=verifier)
    header = encode_line(header_of(experiment, run))
    lines = _resume(run, swarm, header=header)
    with run.part.open("wb") as file:
        file.writelines(lines or [header, encode_line(swarm.base_scores())])
        saved_at = monotonic()
        while swarm.rounds_done < experiment.rounds:
            file.write(encode_line(swarm.play_round()))
            file.flush()
            stopping = not goes_on()
            if stopping or monotonic() - saved_at > snapshot_every_s:
                flush(run.part)
                _take_snapshot(run, swarm)
                saved_at = monotonic()
            if stopping:
                return
    flush(run.part)
    run.part.rename(run.whole)
    shutil.rmtree(run.snapshots, ignore_errors=True)


def _resume(run: Run, swarm: LabSwarm, *, header: bytes) -> list[bytes]:
    """Load the newest snapshot and return the lines before it; none to begin anew."""
    found = sorted(run.snapshots.glob("round-*"), reverse=True)
    written = run.part.read_bytes().splitlines(keepends=True) if run.part.exists() else []
    if not found or not written or written[0] != header:
        shutil.rmtree(run.snapshots, ignore_errors=True)
        return []
    swarm.load(found[0])
    return written[: swarm.rounds_done + 2]


def _take_snapshot(run: Run, swarm: LabSwarm) -> None:
    older = list(run.snapshots.glob("round-*"))
    run.snapshots.mkdir(parents=True, exist_ok=True)
    swarm.save(run.snapshots / f"round-{swarm.rounds_done:06d}")
    for path in older:
        shutil.rmtree(path, ignore_errors=True)
