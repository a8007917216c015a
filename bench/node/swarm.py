"""Measure how much longer a training step takes on a node that has joined a real coordinator.

Two joined nodes and two nodes that train alone run at the same time, so that the site and all other
processes on the machine slow them equally. Each joined node shares a core with a node that trains
alone. Two figures are compared: the time from the end of one step to the end of the next, and the
CPU time per step of the node and its verifier, with all threads and children. Both include
everything that only a joined node does: its training thread's work for the swarm, the time that its
event loop takes from that thread, and work between the steps. CPU time does not depend on how many
processes share the machine. With more processes than cores, the time from step to step favours
nodes that wait for messages, because the scheduler then runs them first.

The training work is equal. All nodes' completions stay equally long, because the learning rate is
0. Half of the own and half of the external rollouts are informative (`EveryOtherReward`), so
updates take equal time. The site makes no further judge rounds. They would cost joined nodes time,
but in a usual season they come only every few minutes, not with each step.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean

import psutil

from bench.report import PROJECT
from bench.site import RunningSite, running_site
from swarm_web.local.commands import create_node, here, join_swarm
from swarm_web.local.probes import HOST

# Two of each kind, so that a joined node can fetch rollouts of the other one.
JOINED = ("bench-left", "bench-right")
ALONE = ("bench-alone", "bench-apart")
MODEL = "small"
STEPS = 400
# Steps before the measurement, while the pool and caches fill.
WARM_UP_STEPS = 20
SAME_WORK = (
    *("--learning-rate", "0", "--reward", "bench.node.work:EveryOtherReward"),
    "--keep-uninformative",
    *("--num-generations", "8", "--mix", "4/4", "--max-completion-length", "32"),
)
_NO_ROUNDS = "from judge.models import Season; Season.objects.update(cadence_seconds=0)"
# A few minutes on a quiet machine; a busy one takes many times that.
_DONE_TIMEOUT_S = 1800.0
_POLL_S = 0.5


@dataclass(frozen=True)
class StepPace:
    """One node's means over the measured steps: seconds, and the number of external rollouts used.

    `step_s` is the time from the end of one step to the end of the next, `cpu_s` the CPU time of
    the node and its verifier. `swarm_s` is the training thread's time for exchanging rollouts, and
    `judge_s` its time for checking rollouts of others.
    """

    step_s: float
    cpu_s: float
    swarm_s: float
    judge_s: float
    external_used: float


class Runner:
    """A running node's process, measured through its files and the operating system."""

    def __init__(self, process: subprocess.Popen[bytes], state: Path) -> None:
        self._process = process
        self._state = state
        self._first = 0
        self._cpu_s = 0.0

    def steps(self) -> list[dict[str, float | str]]:
        """Return the metrics of each step so far. Raises RuntimeError if the node has ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the node of {self._state.name} has ended")
        path = self._state / "metrics.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def begin(self) -> None:
        """Begin the measurement: it covers the steps after the latest completed one."""
        self._first = len(self.steps()) - 1
        self._cpu_s = self._cpu()

    def has_completed(self, count: int) -> bool:
        """Return whether the node has completed `count` steps since `begin`.

        Before `begin` is called, the node's first step does not count.
        """
        return len(self.steps()) > self._first + count

    def pace(self) -> StepPace:
        """Return the means over the steps since `begin`."""
        cpu_s = self._cpu() - self._cpu_s
        first, *made = self.steps()[self._first :]
        return StepPace(
            step_s=(_ended_at(made[-1]) - _ended_at(first)) / len(made),
            cpu_s=cpu_s / len(made),
            swarm_s=fmean(float(step["seconds/swarm"]) for step in made),
            judge_s=fmean(float(step["seconds/judge"]) for step in made),
            external_used=fmean(float(step["external_used"]) for step in made),
        )

    def _cpu(self) -> float:
        """Return the CPU seconds of the node and all its children, including ended ones."""
        node = psutil.Process(self._process.pid)
        times = [process.cpu_times() for process in (node, *node.children(recursive=True))]
        ended = sum(spent.children_user + spent.children_system for spent in times)
        return ended + sum(spent.user + spent.system for spent in times)


def measure_swarm_overhead() -> dict[str, float]:
    """Compare steps of joined nodes with steps of nodes that train alone; return figures by name.

    The overheads are the fractions by which joining increases a step's CPU time and its duration,
    0.01 for 1 %. The other figures explain them: seconds per step, the shares of a joined node's
    step that its training thread spent on exchanging and on checking external rollouts, and the
    number of external rollouts used per step. Raises RuntimeError if a node ends, or if the warm-up
    or the measured steps take longer than half an hour.
    """
    with tempfile.TemporaryDirectory() as name, running_site() as site, ExitStack() as running:
        folder = Path(name)
        _manage(site, ("python", "manage.py", "shell", "-c", _NO_ROUNDS))
        cores = sorted(os.sched_getaffinity(0)) * len(JOINED)
        arguments = {node: _joining(site, node, folder) for node in JOINED}
        arguments |= {node: _training_alone(node, folder) for node in ALONE}
        nodes = [
            running.enter_context(_running(arguments[node], node, folder, core=core))
            for names in (JOINED, ALONE)
            for node, core in zip(names, cores, strict=False)
        ]
        try:
            _await_steps(nodes, WARM_UP_STEPS)
            for node in nodes:
                node.begin()
            _await_steps(nodes, STEPS)
            paces = [node.pace() for node in nodes]
            return _compare(paces[: len(JOINED)], paces[len(JOINED) :])
        except RuntimeError as problem:
            raise RuntimeError(f"{problem}; the nodes said:\n{_log_tail(folder)}") from None


def _compare(joined: Sequence[StepPace], alone: Sequence[StepPace]) -> dict[str, float]:
    step_s, lone_step_s = (fmean(pace.step_s for pace in side) for side in (joined, alone))
    cpu_s, lone_cpu_s = (fmean(pace.cpu_s for pace in side) for side in (joined, alone))
    return {
        "joined_cpu_overhead": cpu_s / lone_cpu_s - 1,
        "joined_time_overhead": step_s / lone_step_s - 1,
        "joined_swarm_share": fmean(pace.swarm_s for pace in joined) / step_s,
        "joined_judge_share": fmean(pace.judge_s for pace in joined) / step_s,
        "joined_external_used": fmean(pace.external_used for pace in joined),
        "joined_step_s": step_s,
        "alone_step_s": lone_step_s,
    }


def _joining(site: RunningSite, node: str, folder: Path) -> tuple[str, ...]:
    """Register a node; return the client's arguments with which the node joins the site."""
    token = str(folder / f"{node}.token")
    _manage(site, create_node(name=node, arm="swarm", token_file=token))
    url, state = f"http://{HOST}:{site.port}/", str(folder / node)
    return join_swarm(url=url, token_file=token, model=MODEL, state=state)[1:]


def _training_alone(node: str, folder: Path) -> tuple[str, ...]:
    return ("train", "--offline", "--model", MODEL, "--state-dir", str(folder / node), "--plain")


@contextmanager
def _running(arguments: Sequence[str], node: str, folder: Path, *, core: int) -> Iterator[Runner]:
    """Run a node with one compute thread, and all its processes on `core`, until the block ends."""
    with (folder / f"{node}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "node_client", *arguments, *SAME_WORK],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    try:
        psutil.Process(process.pid).cpu_affinity([core])
        yield Runner(process, folder / node)
    finally:
        process.kill()
        process.wait()


def _await_steps(nodes: Sequence[Runner], count: int) -> None:
    give_up_at = time.monotonic() + _DONE_TIMEOUT_S
    while not all(node.has_completed(count) for node in nodes):
        if time.monotonic() > give_up_at:
            raise RuntimeError(f"no {count} steps within {_DONE_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)


def _manage(site: RunningSite, command: tuple[str, ...]) -> None:
    subprocess.run(here(command), cwd=PROJECT, env=site.settings, check=True)


def _ended_at(step: dict[str, float | str]) -> float:
    return datetime.fromisoformat(str(step["time"])).timestamp()


def _log_tail(folder: Path) -> str:
    return "\n".join(log.read_text()[-500:] for log in folder.glob("*.log"))


if __name__ == "__main__":
    print(json.dumps(measure_swarm_overhead(), indent=2))  # noqa: T201 - a command's output
