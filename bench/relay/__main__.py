"""`make bench-relay`: the cost of a node-round, and the number of nodes that a site supports.

In a node-round a node publishes 8 rollouts of 8 completions (27 kB), requests 8 external rollouts,
and reports on its training. The site runs as `make up` starts it, on core 0; the load is a process
on core 1. The same run also measures a minimal relay (`bench.relay.bare`) as the lower bound.
"""

import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from bench.relay import soak
from bench.relay.usage import await_started, find_processes, pin_to_core, read_usage
from bench.report import Target, conclude
from bench.site import RunningSite, running_process, site_with_tables
from swarm_web.local.commands import here
from swarm_web.local.probes import HOST, free_port
from swarm_web.local.process import SiteProcess

# More nodes than in a typical swarm of a hundred, so that none exceeds the site's message rate.
NODES = 400
MISBEHAVING_NODES = 60
# Numbers of node-rounds. Those of the warm-up fill the pool, and make the site start processes that
# it starts on demand, such as the child that checks rollouts.
WARM_UP_ROUNDS, NODE_ROUNDS = 4_000, 24_000
PACED_S = 20
# The node-rounds per second, and in total, of other nodes while all SOCKETS nodes reconnect, which
# takes about half a minute.
STORM_PACE, STORM_ROUNDS = 40, 1_200
# A smaller number makes a faster run, but its figures are not those of the targets.
SOCKETS = int(os.environ.get("SOCKETS", "10000"))
SITE_CORE, LOAD_CORE = 0, 1
_OPEN_FILES = 20_000

TARGETS = [
    Target("cpu_ms_per_node_round", "processor time of a node-round", "ms", at_most=0.8),
    Target("nodes_per_core_per_minute", "nodes a core, at a round a minute", "", at_least=70_000),
    Target("sample_p99_ms_half_load", "p99 of a draw at half load", "ms", at_most=50),
    Target("kb_per_socket", "an idle socket's memory", "kB", at_most=40),
    Target("storm_recovery_s", "10,000 nodes back after a storm", "s", at_most=60),
]


@contextmanager
def running_load(
    url: str, tokens: Path, *options: str, module: str = "bench.relay.load"
) -> Iterator["LoadProcess"]:
    """Start the load process `module`, wait until it is ready, and kill it after the block.

    The process is ready when it prints its first line.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, url, str(tokens), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    psutil.Process(process.pid).cpu_affinity([LOAD_CORE])
    try:
        load = LoadProcess(process)
        load.read()
        yield load
    finally:
        process.kill()
        process.wait()


class LoadProcess:
    """A process with simulated nodes: a line of input starts its work, and it prints figures."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def read(self) -> str:
        """Return the next line that the process prints. Raises RuntimeError if it has ended."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the load has ended; its error is above")
        return line

    def begin(self) -> None:
        """Make the process start its node-rounds, or in `run_storm` abort all its connections."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def run(self) -> dict[str, Any]:
        """Begin, and return the figures that the process prints when its work is done."""
        self.begin()
        figures: dict[str, Any] = json.loads(self.read())
        return figures


def measure_cost(
    url: str, tokens: Path, read: Callable[[], dict[str, float]]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Return the CPU milliseconds per node-round of each part of a relay, and the load's figures.

    `read` returns the CPU seconds that each part has used so far.
    """
    with running_load(url, tokens, "--node-rounds", str(WARM_UP_ROUNDS)) as load:
        load.run()
    with running_load(url, tokens, "--node-rounds", str(NODE_ROUNDS)) as load:
        before = read()
        figures = load.run()
        after = read()
    spent = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
    return {part: 1000 * each / figures["node_rounds"] for part, each in spent.items()}, figures


def measure_sockets(site: RunningSite, crowd: Path, tokens: Path) -> dict[str, Any]:
    """Connect many idle nodes, abort all their connections at once, and let them reconnect.

    `crowd` is the file with the tokens of the idle nodes. The nodes of the file `tokens` run
    node-rounds meanwhile. Returns the memory per idle socket, the seconds until all idle nodes are
    back, the number of failed attempts, and the p99 latency of the other nodes' requests.
    """
    [web] = find_processes(site.launcher, "web")
    empty = web.memory_info().rss
    with running_load(site.socket, crowd) as load:
        grown = web.memory_info().rss - empty
        options = ("--node-rounds", str(STORM_ROUNDS), "--per-second", str(STORM_PACE))
        with running_load(site.socket, tokens, *options) as others:
            others.begin()
            back = load.run()
            meanwhile = json.loads(others.read())
    return {
        "sockets": SOCKETS,
        "kb_per_socket": grown / SOCKETS / 1000,
        "storm_recovery_s": back["seconds"],
        "storm_failures": sum(back["failures"].values()),
        "sample_p99_ms_in_storm": meanwhile["p99_ms"],
    }


@contextmanager
def bare_relay(site: RunningSite, welcome: Path) -> Iterator[tuple[str, int]]:
    """Run the bare relay on the site's Valkey; yield its URL and pid.

    `welcome` is the file of the message that it sends in reply to every hello.
    """
    port = free_port()
    server = SiteProcess(
        name="the bare relay",
        command=here(
            (
                *("python", "-m", "uvicorn", "bench.relay.bare:application"),
                *("--host", HOST, "--port", str(port), "--ws", "websockets-sansio"),
                *("--ws-per-message-deflate", "false", "--no-access-log", "--lifespan", "off"),
                *("--log-level", "critical"),
            )
        ),
        environment={
            **os.environ,
            "REDIS_URL": site.settings["REDIS_URL"],
            "BARE_WELCOME": str(welcome),
        },
        is_ready=partial(_accepts, port),
    )
    with running_process(server) as process:
        psutil.Process(process.pid).cpu_affinity([SITE_CORE])
        yield f"ws://{HOST}:{port}/ws/node/", process.pid


def measure_bare(site: RunningSite, tokens: Path, welcome: Path) -> float:
    """Return the CPU time per node-round of the bare relay and Valkey, in milliseconds."""
    with bare_relay(site, welcome) as (url, pid):
        [valkey] = find_processes(site.launcher, "valkey")
        watched = {"bare": psutil.Process(pid), "valkey": valkey}
        cost, _ = measure_cost(
            url, tokens, lambda: {part: _cpu_seconds(each) for part, each in watched.items()}
        )
    return sum(cost.values())


def measure_pace(url: str, tokens: Path, *, per_second: float) -> dict[str, Any]:
    """Run `per_second` node-rounds per second for about PACED_S seconds; return the figures."""
    rounds = max(NODES, int(per_second * PACED_S) // NODES * NODES)
    options = ("--node-rounds", str(rounds), "--per-second", str(per_second))
    with running_load(url, tokens, *options) as load:
        return load.run()


def main() -> int:
    """Measure everything, print it and write the results; return 1 if a target is missed.

    With SOAK in the environment, run `soak` instead.
    """
    if os.environ.get("SOAK"):
        return soak.main()
    allow_files(_OPEN_FILES)
    with site_with_tables() as site, tempfile.TemporaryDirectory() as name:
        from bench.season import prepare_season, register_in

        folder, url = Path(name), site.socket
        welcome = prepare_season(folder)
        tokens = register_in(folder / "tokens", nodes=NODES)
        crowd = register_in(folder / "crowd", nodes=SOCKETS)
        await_started(site.launcher)
        pin_to_core(SITE_CORE, site.launcher)
        cost, closed = measure_cost(url, tokens, partial(read_usage, site.launcher))
        capacity = closed["node_rounds"] / closed["seconds"]
        paced = measure_pace(url, tokens, per_second=capacity / 2)
        misbehaving = register_in(folder / "misbehaving", nodes=MISBEHAVING_NODES)
        with running_load(url, misbehaving, module="bench.relay.misbehaving"):
            among_misbehaving = measure_pace(url, tokens, per_second=capacity / 2)
        bare = measure_bare(site, tokens, welcome)
        sockets = measure_sockets(site, crowd, tokens)
    total = sum(cost.values())
    figures: dict[str, Any] = {
        "cpu_ms_per_node_round": total,
        "cpu_ms_by_part": cost,
        "bare_cpu_ms_per_node_round": bare,
        "ratio_to_bare_asgi": total / bare,
        "nodes_per_core_per_minute": 60_000 / total,
        "node_rounds_per_s": capacity,
        "sample_p99_ms_half_load": paced["p99_ms"],
        "sample_p50_ms_half_load": paced["p50_ms"],
        "sample_p99_ms_among_rude": among_misbehaving["p99_ms"],
        **sockets,
    }
    print(json.dumps(figures, indent=1))  # noqa: T201 - a command's output
    return conclude("relay", figures, TARGETS)


def allow_files(count: int) -> None:
    """Let this process and its children open `count` files, or fewer if the hard limit is lower."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard_limit == resource.RLIM_INFINITY else min(count, hard_limit)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard_limit))


def _cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


if __name__ == "__main__":
    sys.exit(main())
