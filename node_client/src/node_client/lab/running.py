"""All runs of an experiment, as many at once as there are processors."""

import os
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from node_client.lab.config import Experiment
from node_client.lab.remembering import RememberingVerifier
from node_client.lab.runs import Run, make_run

_POLL_S = 0.5

# Set in a worker by `_begin_worker`; a worker makes one run after the other.
_rounds: "SimpleQueue[int] | None" = None


def runs_of(experiment: Experiment, folder: Path) -> list[Run]:
    """Return every run, seed by seed, so that all arms have equally many at any time."""
    return [Run(folder, arm, seed) for seed in experiment.seeds for arm in experiment.arms]


def run_all(
    experiment: Experiment, folder: Path, *, processes: int | None, console: Console
) -> None:
    """Make every run that is not done yet, and show how far they are.

    Raises what a run raises, after the others that were under way have stopped at a snapshot.
    """
    missing = [run for run in runs_of(experiment, folder) if not run.is_done]
    if not missing:
        return
    context = get_context("spawn")
    rounds: SimpleQueue[int] = context.SimpleQueue()
    with (
        _bar(console) as bar,
        ProcessPoolExecutor(
            max_workers=min(processes or os.cpu_count() or 1, len(missing)),
            mp_context=context,
            initializer=_begin_worker,
            initargs=(rounds,),
        ) as pool,
    ):
        task = bar.add_task(experiment.name, total=len(missing) * experiment.rounds)
        futures = {pool.submit(_make, experiment, run) for run in missing}
        while futures:
            done, futures = wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
            bar.advance(task, _count(rounds))
            _raise_first(done, futures)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds, left:"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )


def _count(rounds: "SimpleQueue[int]") -> int:
    count = 0
    while not rounds.empty():
        rounds.get()
        count += 1
    return count


def _raise_first(done: Iterable[Future[None]], waiting: Iterable[Future[None]]) -> None:
    for future in done:
        if future.exception() is not None:
            for other in waiting:
                other.cancel()
            future.result()


def _begin_worker(rounds: "SimpleQueue[int]") -> None:
    global _rounds
    _rounds = rounds
    # Runs share the processors, so each has one thread; it also fixes the order of sums.
    torch.set_num_threads(1)


def _make(experiment: Experiment, run: Run) -> None:
    with RememberingVerifier() as verifier:
        make_run(experiment, run, verifier=verifier, on_round=_tell)


def _tell(number: int) -> None:
    assert _rounds is not None
    _rounds.put(number)
