"""Test that an arm of an experiment gives the same result in one process and through a site."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev

import msgspec
import pytest
from django.core.management import call_command
from django.utils import timezone
from rich.console import Console

from judge.models import Season
from judge.services.seasons import start_season
from node_client.lab.caching import CachingVerifier
from node_client.lab.config import Experiment, parse_experiment
from node_client.lab.records import RoundRecord, read_run
from node_client.lab.runs import Run, make_run
from node_client.lab.through import run_on_site
from node_client.site import parse_site
from tests.swarm.sites import running_site

pytestmark = [pytest.mark.swarm, pytest.mark.slow]

NODES, ROUNDS, SEED = 3, 25, 5
# The 97.5 % quantile of the t distribution with two degrees of freedom.
T = 4.303
SUMS = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}


def experiment(**changes: object) -> Experiment:
    content = {
        "name": "through",
        "question": "Does the lab agree with the field?",
        "phase": "exploratory",
        "nodes": NODES,
        "rounds": ROUNDS,
        "seeds": [SEED],
        "baseline": "4/4",
        "eval_tasks": 0,
        "season": {
            "seed": 11,
            "tasks": [{"dataset": "chain_sum", "config": SUMS, "weight": 1.0}],
        },
        "arms": [{"name": "4/4", "train": {"mix": "4/4", "external_candidates": 8}}],
    }
    return parse_experiment(content | changes, place="here")


@pytest.fixture
def site(transactional_db: None, tmp_path: Path) -> Iterator[str]:
    season = Season.objects.create(
        name="through",
        seed=11,
        tasks=msgspec.to_builtins(experiment().season.tasks),
        questions_per_round=8,
        cadence_seconds=0,
        max_new_tokens=24,
    )
    start_season(season, now=timezone.now())
    with running_site(tmp_path) as url:
        yield url


@pytest.fixture
def tokens(transactional_db: None, tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{name}.token" for name in ("amber", "bold", "calm")]
    for file in files:
        call_command("create_node", name=file.stem, token_file=file, stdout=StringIO())
    return files


def test_runs_in_one_process_and_through_a_coordinator_agree(
    site: str, tokens: list[Path], tmp_path: Path
) -> None:
    planned = experiment()
    (arm,) = planned.arms
    here, there = Run(tmp_path / "here", arm, SEED), Run(tmp_path / "there", arm, SEED)
    with CachingVerifier() as verifier:
        make_run(planned, here, verifier=verifier)
    run_on_site(
        planned, there, site=parse_site(site), tokens=tokens, console=Console(file=StringIO())
    )
    (_, ours), (_, theirs) = read_run(here.complete_file), read_run(there.complete_file)
    # Same keys, same base: the steps are equal until external rollouts arrive.
    assert ours[1].reward == theirs[1].reward
    assert sum(record.external[0] for record in theirs[1:]) > 0
    assert overlap(interval_of(ours[1:]), interval_of(theirs[1:]))


def interval_of(records: list[RoundRecord]) -> tuple[float, float]:
    """Return the 95 % interval of the cumulative own reward of a node."""
    sums = [sum(record.reward[place] for record in records) for place in range(NODES)]
    half = T * stdev(sums) / NODES**0.5
    return fmean(sums) - half, fmean(sums) + half


def overlap(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
