"""An experiment's report: its computation from the runs, and its encoding as `report.json`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import msgspec
import numpy as np

from node_client.lab.onset import find_onset, moving_average
from node_client.lab.outcomes import final_level
from node_client.lab.report.arms import MAX_POINTS, describe_arm
from node_client.lab.report.claims import PAPER, caution, headline, unlike_the_paper
from node_client.lab.report.comparing import (
    adjust,
    compare,
    gains_by_horizon,
    reach_baseline,
)
from node_client.lab.report.numbers import all_rounded, rounded, spaced_places
from node_client.lab.report.shape import (
    ArmComparison,
    ArmReport,
    GroupOfNodes,
    OnsetReport,
    Outcome,
    Report,
    RunFile,
)
from node_client.lab.results import ArmData, ExperimentResults
from node_client.lab.runs import fingerprint

FORMAT = 1
OUTCOMES_OF_GROUPS: tuple[Outcome, ...] = ("own", "held_out_area", "held_out_final")


def make_report(results: ExperimentResults, *, take_off_at: float | None = None) -> Report:
    """Return the report of an experiment.

    `take_off_at` is the own reward above which a run counts as taken off. By default it is half of
    the best arm's mean own reward in the last ten rounds.
    """
    experiment = results.experiment
    threshold = rounded(_half_way_level(results) if take_off_at is None else take_off_at)
    arms = [
        describe_arm(data, paired=results.paired, take_off_at=threshold) for data in results.arms
    ]
    others = len(experiment.arms) - 1
    comparisons = adjust(list(_comparisons(results, arms)), arms=others)
    option = "" if take_off_at is None else f" --take-off-at {threshold:g}"
    return Report(
        format=FORMAT,
        name=experiment.name,
        question=experiment.question,
        phase=experiment.phase,
        design=fingerprint(experiment),
        settings=results.toml,
        baseline=experiment.baseline,
        rounds=experiment.rounds,
        seeds=results.paired,
        left_out=results.left_out,
        missing=results.missing,
        headline=headline(comparisons, baseline=experiment.baseline, arms=others),
        notes=caution(results, comparisons),
        take_off_at=threshold,
        arms=arms,
        comparisons=comparisons,
        horizons=[
            gains_by_horizon(data, results.baseline, paired=results.paired)
            for data in results.arms
            if data is not results.baseline
        ],
        onsets=[_onset(data, results) for data in results.arms if data is not results.baseline],
        paper=PAPER,
        differences=unlike_the_paper(results),
        commands=[
            "swarm-node lab run experiment.toml --out DIR",
            f"swarm-node lab report DIR{option}",
        ],
        runs=[
            RunFile(data.arm.name, seed, run.file, run.sha256)
            for data in results.arms
            for seed, run in data.runs.items()
        ],
        reached=[
            reached
            for data in results.arms
            if (reached := reach_baseline(data, results.baseline, paired=results.paired))
        ],
    )


def encode_report(report: Report) -> bytes:
    """Return the content of `report.json`."""
    return msgspec.json.encode(report) + b"\n"


def read_report(path: Path) -> Report:
    """Read a report from a `report.json`.

    Raises OSError if it cannot be read, UnicodeDecodeError if a text in it is not UTF-8, and
    msgspec.MsgspecError if it is not a report.
    """
    return msgspec.json.decode(path.read_bytes(), type=Report)


def _half_way_level(results: ExperimentResults) -> float:
    levels = [
        [final_level(data.runs[seed].reward) for seed in results.paired] for data in results.arms
    ]
    return float(np.mean(levels, axis=1).max()) / 2


def _comparisons(results: ExperimentResults, arms: Sequence[ArmReport]) -> Iterator[ArmComparison]:
    reports = dict(zip((data.arm.name for data in results.arms), arms, strict=True))
    baseline = reports[results.experiment.baseline]
    for data, arm in zip(results.arms, arms, strict=True):
        if arm is baseline:
            continue
        for outcome in get_args(Outcome):
            comparison = compare(arm, baseline, outcome, seeds=results.paired)
            # Without attackers in either arm there is no planted text to compare.
            if comparison and (outcome != "poisoned" or arm.attackers or baseline.attackers):
                yield comparison
        for group in _comparable_groups(data, results.baseline, arm.groups):
            for outcome in OUTCOMES_OF_GROUPS:
                if found := compare(arm, baseline, outcome, seeds=results.paired, group=group):
                    yield found


def _comparable_groups(
    data: ArmData, baseline: ArmData, groups: Sequence[GroupOfNodes]
) -> list[GroupOfNodes]:
    """Return those of `groups` whose nodes start from the same base models in both arms."""
    mine = [plan.base for plan in data.plans]
    theirs = [plan.base for plan in baseline.plans]
    return [
        group
        for group in groups
        if mine[group.first : group.last + 1] == theirs[group.first : group.last + 1]
    ]


def _onset(data: ArmData, results: ExperimentResults) -> OnsetReport:
    differences = np.stack(
        [
            data.runs[seed].reward.mean(axis=1) - results.baseline.runs[seed].reward.mean(axis=1)
            for seed in results.paired
        ]
    )
    smooth = moving_average(differences)
    found = find_onset(smooth)
    began = differences.shape[1] - smooth.shape[1] + 1
    kept = spaced_places(smooth.shape[1], most=MAX_POINTS)
    return OnsetReport(
        arm=data.arm.name,
        seeds=len(results.paired),
        rounds=[began + place for place in kept],
        difference=all_rounded(found.difference[kept]),
        band=all_rounded(found.band[kept]),
        first=None if found.first is None else began + found.first,
        stays=None if found.stays is None else began + found.stays,
    )
