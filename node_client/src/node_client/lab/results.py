"""All runs of an experiment's folder, checked and converted to arrays.

Runs that were made with other settings than those of the folder's `experiment.toml` are refused, so
that a report never mixes two designs.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from node_client.errors import NodeError
from node_client.lab.config import (
    Experiment,
    ExperimentArm,
    NodePlan,
    evaluated_rounds,
    plan_nodes,
    read_experiment,
)
from node_client.lab.records import (
    RERUN_FIX,
    RoundRecord,
    UnreadableRunError,
    encode_line,
    read_run,
)
from node_client.lab.running import runs_of
from node_client.lab.runs import Run, header_of
from node_client.lab.statistics import Floats
from node_client.settings.train_config import plan_step

# The fields of `RoundRecord` that `RunData` has unchanged.
_AS_RECORDED = (
    "reward", "set_reward", "informative", "external", "tokens", "length", "reflection"
)  # fmt: skip


class ResultsError(NodeError):
    """The runs of a folder do not belong in one report, or too few of them are finished."""


@dataclass(frozen=True)
class RunData:
    """One run. Arrays are (rounds, training nodes), with the values of `RoundRecord`.

    Rows begin with round 1, except in `held_out`, which has a row for each of `held_out_rounds`.
    `informative_in_set` is the number of informative rollouts in a node's training set. `sent` and
    `received` are bytes, and 0 for a node that cannot train on the rollouts of others, because it
    is isolated or because the arm's `source` is `self`. `file` is the name of the uncompressed
    file, and `sha256` the hash of its content in hex.
    """

    seed: int
    file: str
    sha256: str
    reward: Floats
    set_reward: Floats
    informative: Floats
    informative_in_set: Floats
    external: Floats
    tokens: Floats
    sent: Floats
    received: Floats
    length: Floats
    reflection: Floats
    poisoned: Floats
    held_out_rounds: list[int]
    held_out: Floats


@dataclass(frozen=True)
class ArmData:
    """One arm: the plans of its nodes that train, in order, and its finished runs by seed."""

    arm: ExperimentArm
    design: str
    plans: list[NodePlan]
    runs: dict[int, RunData]


@dataclass(frozen=True)
class ExperimentResults:
    """The finished runs of an experiment's folder, by arm.

    `arms` has the arms with a finished run, `missing` the names of the unfinished runs. `paired`
    has the seeds with a finished run in each of `arms`, `left_out` the seeds with a finished run in
    only some of `arms`. `toml` is the text of `experiment.toml`.
    """

    experiment: Experiment
    toml: str
    arms: list[ArmData]
    missing: list[str]
    paired: list[int]
    left_out: list[int]

    @property
    def baseline(self) -> ArmData:
        """The arm that the others are compared with."""
        return next(arm for arm in self.arms if arm.arm.name == self.experiment.baseline)


def read_results(folder: Path) -> ExperimentResults:
    """Return all finished runs of a folder.

    Raises SettingsError if `experiment.toml` cannot be read or is invalid. Raises
    UnreadableRunError if a finished run is damaged, lacks what a report needs, or has other
    settings than `experiment.toml`.

    Raises ResultsError if the folder has a run that the experiment does not name, or two different
    files of one run. Also raises it if the baseline has no finished run, or if no seed has a
    finished run in every arm. For this last condition, arms without any finished run do not count.
    """
    settings = folder / "experiment.toml"
    experiment = read_experiment(settings)
    runs = runs_of(experiment, folder)
    _check_unknown_files(folder, runs)
    arms = [_read_arm(experiment, arm, runs) for arm in experiment.arms]
    arms = [arm for arm in arms if arm.runs]
    if experiment.baseline not in [arm.arm.name for arm in arms]:
        raise ResultsError(
            f"No run of the baseline {experiment.baseline} is finished in {folder}.",
            fix=f"`swarm-node lab run {settings} --out {folder}` makes the missing runs.",
        )
    paired = [seed for seed in experiment.seeds if all(seed in arm.runs for arm in arms)]
    if not paired:
        raise ResultsError(
            f"There is no seed in {folder} that every arm was run with.",
            fix=f"`swarm-node lab run {settings} --out {folder}` makes the missing runs.",
        )
    return ExperimentResults(
        experiment=experiment,
        toml=settings.read_text(encoding="utf-8"),
        arms=arms,
        missing=[run.name for run in runs if run.finished_file is None],
        paired=paired,
        left_out=[
            seed
            for seed in experiment.seeds
            if seed not in paired and any(seed in arm.runs for arm in arms)
        ],
    )


def _check_unknown_files(folder: Path, runs: Sequence[Run]) -> None:
    """Raise ResultsError if a finished run is not in the experiment or has two different files.

    The two files are the uncompressed and the compressed one.
    """
    for run in runs:
        if (
            run.complete_file.exists()
            and run.packed_file.exists()
            and read_run(run.complete_file) != read_run(run.packed_file)
        ):
            raise ResultsError(
                f"{run.complete_file} and {run.packed_file.name} beside it are not the same run.",
                fix="Keep the one that is the experiment's, and remove the other.",
            )
    expected = {run.name for run in runs}
    found = {path.name.split(".jsonl")[0] for path in (folder / "runs").glob("*.jsonl*")}
    if unknown := sorted(found - expected):
        raise ResultsError(
            f"{folder} has runs that its experiment.toml does not name: {', '.join(unknown)}.",
            fix="Name their arms and seeds in experiment.toml, or keep them in another folder:"
            " a report leaves no run out silently.",
        )


def _read_arm(experiment: Experiment, arm: ExperimentArm, runs: Sequence[Run]) -> ArmData:
    plans = [plan for plan in plan_nodes(experiment, arm) if plan.attack == "none"]
    arm_runs = [run for run in runs if run.arm is arm]
    return ArmData(
        arm=arm,
        design=header_of(experiment, arm_runs[0]).design,
        plans=plans,
        runs={
            run.seed: _read(experiment, run, plans, path)
            for run in arm_runs
            if (path := run.finished_file)
        },
    )


def _read(experiment: Experiment, run: Run, plans: Sequence[NodePlan], path: Path) -> RunData:
    header, records = read_run(path)
    if header != header_of(experiment, run):
        raise UnreadableRunError(
            f"The run {path} is of another design than experiment.toml beside it.",
            fix="Keep runs of each design in a folder of their own.",
        )
    if [record.round for record in records] != list(range(experiment.rounds + 1)):
        raise UnreadableRunError(
            f"The run {path} does not have each of its rounds once and in order.", fix=RERUN_FIX
        )
    tested = [record for record in records if record.held_out]
    if [record.round for record in tested] != evaluated_rounds(experiment):
        raise UnreadableRunError(
            f"The run {path} does not have the evaluations that experiment.toml asks for.",
            fix=RERUN_FIX,
        )
    if not any(record.sent or record.reflection for record in records):
        raise UnreadableRunError(
            f"The run {path} has neither traffic nor reflection. It was made with `lab run"
            " --through`, and clients of a coordinator do not measure them.",
            fix="Keep runs made with --through in a folder of their own, and compare the rewards in"
            " their files.",
        )
    digest = hashlib.sha256(b"".join([encode_line(header), *map(encode_line, records)])).hexdigest()
    try:
        return _assemble_run(run, records[1:], tested, plans=plans, path=path, digest=digest)
    except ValueError as problem:
        raise UnreadableRunError(
            f"The run {path} has lines that do not fit its {len(plans)} training nodes: {problem}.",
            fix=RERUN_FIX,
        ) from problem


def _assemble_run(
    run: Run,
    rounds: Sequence[RoundRecord],
    tested: Sequence[RoundRecord],
    *,
    plans: Sequence[NodePlan],
    path: Path,
    digest: str,
) -> RunData:
    shape = (len(rounds), len(plans))

    def stack(field: str) -> Floats:
        rows = [getattr(record, field) for record in rounds]
        return np.array(rows, dtype=np.float64).reshape(shape)

    arrays = {name: stack(name) for name in _AS_RECORDED}
    steps = [plan_step(plan.config, plan.season) for plan in plans]
    sizes = np.array([step.local + step.external for step in steps], dtype=np.float64)
    # A set is smaller than planned if own and external rollouts together are too few.
    in_set = np.minimum(sizes, stack("generated") + arrays["external"])
    attacked = any(record.poisoned for record in rounds)
    swarm = [run.arm.source == "others" and plan.config.arm != "isolated" for plan in plans]
    return RunData(
        seed=run.seed,
        file=path.name.removesuffix(".gz"),
        sha256=digest,
        **arrays,
        informative_in_set=stack("set_informative") * in_set,
        sent=stack("sent") * swarm,
        received=stack("received") * swarm,
        poisoned=stack("poisoned") if attacked else np.zeros(shape),
        held_out_rounds=[record.round for record in tested],
        held_out=np.array([record.held_out for record in tested], dtype=np.float64).reshape(
            len(tested), len(plans)
        ),
    )
