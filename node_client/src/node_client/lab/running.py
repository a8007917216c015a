"""Execution of all runs of an experiment, several at a time in worker processes."""

import multiprocessing
import os
import signal
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from node_client.errors import NodeError
from node_client.lab.caching import CachingVerifier
from node_client.lab.config import Experiment
from node_client.lab.runs import Run, is_done, make_run
from swarm_protocol.errors import RefusedError

_POLL_S = 0.5


@dataclass(frozen=True)
class WorkerSignals:
    """Messages between the workers and their parent.

    After each round, a worker puts the number of rounds finished since its last message into
    `rounds`. Its first message for a resumed run includes the rounds before the snapshot. The
    parent sets `stopping` to make all workers stop after their current round.
    """

    rounds: "SimpleQueue[int]"
    stopping: Event


# Set in a worker by `_begin_worker`; a worker makes one run after another.
_signals: WorkerSignals | None = None


def runs_of(experiment: Experiment, folder: Path) -> list[Run]:
    """Return every run of an experiment, finished or not.

    Runs are ordered by seed and then by arm, so that all arms progress equally.
    """
    return [Run(folder, arm, seed) for seed in experiment.seeds for arm in experiment.arms]


def missing_runs(experiment: Experiment, folder: Path) -> list[Run]:
    """Return the runs that are not finished.

    Raises UnreadableRunError if a finished run is damaged or does not fit `experiment`.
    """
    return [run for run in runs_of(experiment, folder) if not is_done(experiment, run)]


def run_all(
    experiment: Experiment, folder: Path, *, processes: int | None, console: Console
) -> None:
    """Complete all unfinished runs in worker processes, and show the progress.

    `processes` is the number of runs at a time; None stands for the number of cores. If a run
    fails, its error is raised. On SIGINT or SIGTERM, NodeError is raised. In both cases, runs still
    in progress first finish their round and take a snapshot.

    If runs are left at the end because another process is working on them, NodeError is raised.
    Raises UnreadableRunError as `missing_runs` does.
    """
    missing = missing_runs(experiment, folder)
    if not missing:
        return
    context = multiprocessing.get_context("spawn")
    signals = WorkerSignals(context.SimpleQueue(), context.Event())
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _bar(console) as bar, _workers(context, signals, processes, runs=len(missing)) as pool:
            futures = {pool.submit(_make, experiment, run) for run in missing}
            task = bar.add_task(experiment.name, total=len(missing) * experiment.rounds)
            try:
                while futures:
                    done, futures = wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                    bar.advance(task, _count(signals.rounds))
                    for future in done:
                        future.result()
            finally:
                signals.stopping.set()
                pool.shutdown(cancel_futures=True)
    except KeyboardInterrupt:
        raise NodeError(
            "Stopped. Finished runs are kept, and the others have a snapshot.",
            fix="The same command resumes from there.",
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    if left := missing_runs(experiment, folder):
        raise NodeError(
            f"Another process is making {', '.join(run.name for run in left)};"
            " all others are done.",
            fix="Wait until it has ended, and give the same command again.",
        )


def _workers(
    context: SpawnContext, signals: WorkerSignals, processes: int | None, *, runs: int
) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=min(processes or os.cpu_count() or 1, runs),
        mp_context=context,
        initializer=_begin_worker,
        initargs=(signals,),
    )


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
        count += rounds.get()
    return count


def _begin_worker(signals: WorkerSignals) -> None:
    global _signals
    _signals = signals
    # A terminal's Ctrl-C reaches workers too; they stop at a snapshot when the parent asks them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Runs share the cores, so each has one thread; it also fixes the order of sums.
    torch.set_num_threads(1)


def _make(experiment: Experiment, run: Run) -> None:
    counted = 0

    def should_continue(rounds_done: int) -> bool:
        """Report finished rounds, and return whether to continue. Exit if the parent is gone."""
        nonlocal counted
        parent = multiprocessing.parent_process()
        if parent is None or not parent.is_alive():
            os._exit(1)  # snapshots exist; without the parent, threads of the pool would never end
        assert _signals is not None
        _signals.rounds.put(rounds_done - counted)
        counted = rounds_done
        return not _signals.stopping.is_set()

    with CachingVerifier() as verifier:
        try:
            make_run(experiment, run, verifier=verifier, should_continue=should_continue)
        except RefusedError as problem:
            raise NodeError(
                f"The verifier failed in the run {run.name}: {problem.message}.",
                fix="The same command resumes from the run's latest snapshot.",
            ) from None
