"""All runs of an experiment, as many at once as there are cores."""

import multiprocessing
import os
import signal
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing.context import SpawnContext
from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Event
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from node_client.errors import NodeError
from node_client.lab.config import Experiment
from node_client.lab.remembering import RememberingVerifier
from node_client.lab.runs import Run, is_done, make_run
from swarm_protocol.errors import RefusedError

_POLL_S = 0.5


@dataclass(frozen=True)
class Wires:
    """What a worker and the process that started it say to each other: rounds done, and stop."""

    rounds: "SimpleQueue[int]"
    stopping: Event


# Set in a worker by `_begin_worker`; a worker makes one run after the other.
_wires: Wires | None = None


def runs_of(experiment: Experiment, folder: Path) -> list[Run]:
    """Return every run, seed by seed, so that all arms have equally many at any time."""
    return [Run(folder, arm, seed) for seed in experiment.seeds for arm in experiment.arms]


def missing_runs(experiment: Experiment, folder: Path) -> list[Run]:
    """Return the runs that are not done. Raises UnreadableRunError for one of another design."""
    return [run for run in runs_of(experiment, folder) if not is_done(experiment, run)]


def run_all(
    experiment: Experiment, folder: Path, *, processes: int | None, console: Console
) -> None:
    """Make every run that is not done yet, and show how far they are.

    When one fails, or this process is told to stop, the runs that are under way stop at a snapshot
    after their current round. Raises what a run raises, and NodeError when told to stop or when
    another process is at some of the runs.
    """
    missing = missing_runs(experiment, folder)
    if not missing:
        return
    context = multiprocessing.get_context("spawn")
    wires = Wires(context.SimpleQueue(), context.Event())
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with _bar(console) as bar, _workers(context, wires, processes, runs=len(missing)) as pool:
            futures = {pool.submit(_make, experiment, run) for run in missing}
            task = bar.add_task(experiment.name, total=len(missing) * experiment.rounds)
            try:
                while futures:
                    done, futures = wait(futures, timeout=_POLL_S, return_when=FIRST_COMPLETED)
                    bar.advance(task, _count(wires.rounds))
                    _raise_first(done)
            finally:
                wires.stopping.set()
                pool.shutdown(cancel_futures=True)
    except KeyboardInterrupt:
        raise NodeError(
            "Stopped. Finished runs are kept, and those under way have a snapshot.",
            fix="The same command resumes from there.",
        ) from None
    finally:
        signal.signal(signal.SIGTERM, before)
    if left := missing_runs(experiment, folder):
        raise NodeError(
            f"Another process is at {', '.join(run.name for run in left)}; all others are done.",
            fix="Wait until it has ended, and give the same command again.",
        )


def _workers(
    context: SpawnContext, wires: Wires, processes: int | None, *, runs: int
) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(
        max_workers=min(processes or os.cpu_count() or 1, runs),
        mp_context=context,
        initializer=_begin_worker,
        initargs=(wires,),
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


def _raise_first(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()


def _begin_worker(wires: Wires) -> None:
    global _wires
    _wires = wires
    # A terminal's Ctrl-C reaches workers too; they stop when they are told, at a snapshot.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Runs share the cores, so each has one thread; it also fixes the order of sums.
    torch.set_num_threads(1)


def _make(experiment: Experiment, run: Run) -> None:
    counted = 0

    def goes_on(rounds_done: int) -> bool:
        """Count rounds, and say whether to go on: not when told to stop, nor as an orphan."""
        nonlocal counted
        parent = multiprocessing.parent_process()
        if parent is None or not parent.is_alive():
            os._exit(1)  # snapshots are there; nobody is left to end the pool's own threads
        assert _wires is not None
        _wires.rounds.put(rounds_done - counted)
        counted = rounds_done
        return not _wires.stopping.is_set()

    with RememberingVerifier() as verifier:
        try:
            make_run(experiment, run, verifier=verifier, goes_on=goes_on)
        except RefusedError as problem:
            raise NodeError(
                f"The verifier failed in the run {run.name}: {problem.message}.",
                fix="The same command resumes from the run's latest snapshot.",
            ) from None
