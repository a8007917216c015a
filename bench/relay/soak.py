"""`SOAK=1 make bench-relay`: check whether memory grows in ten minutes of relay traffic.

The traffic begins ten minutes before the first measurement, because the pool must fill and rollouts
must begin to expire.

Nodes of `bench.relay.load` run node-rounds at a constant rate, and some lose their connection and
reconnect. The memory of all processes of the site is read every few seconds: resident memory
without shared pages, because a Postgres process counts each page of the shared buffers that it has
touched. `bench.relay.growth` defines when memory is flat.

    python -m bench.relay.soak --settle 10 --minutes 10 --per-second 20
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from bench.relay.growth import Growth, fit_growth
from bench.relay.usage import find_processes, pin_to_core
from bench.report import print_table, write_results
from bench.site import RunningSite, site_with_tables

PARTS = ("web", "worker", "beat", "postgres", "valkey")
NODES = 100
SETTLE_MINUTES, MINUTES = 10.0, 10.0
PER_SECOND = 20.0
READING_INTERVAL_S = 5.0
# In one of this many turns a node loses its connection and reconnects.
LOSS_EVERY = 20
SITE_CORE, LOAD_CORE = 0, 1
_EXIT_TIMEOUT_S = 120

Readings = dict[str, list[int]]


def read_memory(launcher: int) -> dict[str, int]:
    """Return the resident bytes of each part of the site, without shared pages."""
    sizes = dict.fromkeys(PARTS, 0)
    for part in PARTS:
        for process in find_processes(launcher, part):
            with suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                sizes[part] += memory.rss - memory.shared
    return sizes


def watch(
    launcher: int, load: "subprocess.Popen[str]", *, settle_s: float
) -> tuple[list[float], Readings]:
    """Wait `settle_s` seconds, then read the memory repeatedly until the process `load` ends.

    Returns the times of the readings, in seconds since the first reading, and for each part of the
    site its memory in bytes at these times.
    """
    with suppress(subprocess.TimeoutExpired):
        load.wait(timeout=settle_s)
    seconds: list[float] = []
    readings: Readings = {part: [] for part in PARTS}
    began = time.monotonic()
    while load.poll() is None:
        seconds.append(time.monotonic() - began)
        for part, size in read_memory(launcher).items():
            readings[part].append(size)
        with suppress(subprocess.TimeoutExpired):
            load.wait(
                timeout=max(0.0, began + len(seconds) * READING_INTERVAL_S - time.monotonic())
            )
    return seconds, readings


def soak(
    site: RunningSite, tokens: Path, *, settle: float, minutes: float, per_second: float
) -> tuple[dict[str, Growth], dict[str, Any]]:
    """Load a site for `settle + minutes` minutes, and measure the memory in the last `minutes`.

    Returns the growth by part, with `all` for the whole site, and the figures of the load.
    Raises RuntimeError if the load fails.
    """
    rounds = int(60 * (settle + minutes) * per_second)
    load = subprocess.Popen(
        [
            *(sys.executable, "-m", "bench.relay.load", site.socket, str(tokens)),
            *("--node-rounds", str(rounds), "--per-second", str(per_second)),
            *("--lose-every", str(LOSS_EVERY)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    psutil.Process(load.pid).cpu_affinity([LOAD_CORE])
    try:
        seconds, readings = watch(site.launcher, load, settle_s=60 * settle)
        output, _ = load.communicate(timeout=_EXIT_TIMEOUT_S)
    finally:
        load.kill()
        load.wait()
    if load.returncode != 0:
        raise RuntimeError("the load has failed; its error is above")
    total = [sum(sizes) for sizes in zip(*readings.values(), strict=True)]
    growths = {name: fit_growth(seconds, sizes) for name, sizes in readings.items()}
    return growths | {"all": fit_growth(seconds, total)}, json.loads(output.splitlines()[-1])


def print_growths(growths: dict[str, Growth]) -> None:
    """Print a table with the growth of each part's memory."""
    rows = []
    for part, growth in growths.items():
        interval = f"{growth.low / 1e6:+.2f} to {growth.high / 1e6:+.2f}"
        verdict = "[red]grows[/]" if growth.low > 0 else "[yellow]unclear[/]"
        verdict = "[green]flat[/]" if growth.is_flat else verdict
        sizes = (f"{growth.at_end / 1e6:.1f}", f"{growth.bytes / 1e6:+.2f}")
        rows.append((part, *sizes, interval, verdict))
    headings = ("part", "at the end", "growth in ten minutes", "95 % interval", "")
    title = "Memory of the site's processes, in MB"
    print_table(title, headings, rows, left=("part", ""))


def describe(growths: dict[str, Growth], load: dict[str, Any]) -> dict[str, object]:
    """Return the figures for the results file: the growths in MB, and those of the load."""
    return {
        "memory_is_flat": all(growth.is_flat for growth in growths.values()),
        "growth_mb_per_10_minutes": {part: each.bytes / 1e6 for part, each in growths.items()},
        "growth_mb_at_most": {part: each.high / 1e6 for part, each in growths.items()},
        "memory_mb": {part: each.at_end / 1e6 for part, each in growths.items()},
        **load,
    }


def main(argv: Sequence[str] = ()) -> int:
    """Start a site, load it, and print how its memory grows; return 1 if the memory is not flat.

    A run of the default length also writes the results.
    """
    parser = argparse.ArgumentParser(description=__doc__, prog="python -m bench.relay.soak")
    parser.add_argument("--settle", type=float, default=SETTLE_MINUTES, help="minutes")
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--per-second", type=float, default=PER_SECOND, help="node-rounds")
    options = parser.parse_args(argv)
    with site_with_tables() as site, tempfile.TemporaryDirectory() as folder:
        from bench.season import prepare_season, register_in

        prepare_season(Path(folder))
        tokens = register_in(Path(folder) / "soak", nodes=NODES)
        pin_to_core(SITE_CORE, site.launcher)
        growths, load = soak(site, tokens, **vars(options))
    print_growths(growths)
    figures = describe(growths, load)
    if (options.settle, options.minutes) == (SETTLE_MINUTES, MINUTES):
        print(f"written to {write_results('relay-soak', figures)}")  # noqa: T201 - output
    return 0 if figures["memory_is_flat"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
