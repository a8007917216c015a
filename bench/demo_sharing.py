"""Run demos, and count those in which all sharing nodes get ahead of the isolated one in time.

Each demo starts with an empty folder, as `make demo` does on a new machine. It ends as soon as the
sharing nodes are ahead, or when the time is up. They are ahead if the 95 % interval of each sharing
node on the demo's leaderboard lies above the intervals of all isolated nodes.

    python -m bench.demo_sharing --demos 10 --minutes 10 --at-once 2

A demo takes a third of a core, because its nodes rest between steps, so several can run at once.
"""

import argparse
import json
import sys
import time
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from bench.report import write_results
from bench.site import running_site
from swarm_web.local.probes import HOST

_POLL_S = 5.0
_REQUEST_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class SharingScore:
    """A node's score over the season so far, from 0 to 1, with the bounds of its 95 % interval."""

    node: str
    arm: str
    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Demo:
    """The outcome of one demo; `scores` are the scores at its end.

    `ahead_after_s` is the time in seconds from when the site was ready until all sharing nodes were
    ahead (`is_ahead`), or None if they never were.
    """

    ahead_after_s: float | None
    scores: list[SharingScore]


def is_ahead(scores: Sequence[SharingScore]) -> bool:
    """Return whether the intervals of all sharing nodes lie above those of all isolated ones.

    False if either kind has no scores.
    """
    lows = [score.low for score in scores if score.arm == "swarm"]
    highs = [score.high for score in scores if score.arm == "isolated"]
    return bool(lows) and bool(highs) and min(lows) > max(highs)


def watch_demo(*, nodes: int, minutes: float) -> Demo:
    """Run one demo with `nodes` nodes for at most `minutes`, and return its outcome."""
    with running_site("demo", "--nodes", str(nodes)) as site:
        began = time.monotonic()
        while (spent := time.monotonic() - began) < minutes * 60:
            scores = _read_scores(site.port)
            if is_ahead(scores):
                return Demo(spent, scores)
            time.sleep(_POLL_S)
        return Demo(None, _read_scores(site.port))


def _read_scores(port: int) -> list[SharingScore]:
    with urllib.request.urlopen(
        f"http://{HOST}:{port}/api/v1/leaderboard?window=season", timeout=_REQUEST_TIMEOUT_S
    ) as answer:
        return [_read_row(row) for row in json.load(answer)["items"]]


def _read_row(row: dict[str, Any]) -> SharingScore:
    low, high = row["interval"]
    return SharingScore(row["node"], row["arm"], row["score"], low, high)


def _describe(demo: Demo) -> str:
    scores = ", ".join(
        f"{score.node} ({score.arm}) {score.score:.3f} [{score.low:.3f}, {score.high:.3f}]"
        for score in sorted(demo.scores, key=lambda score: -score.score)
    )
    when = "not ahead" if demo.ahead_after_s is None else f"ahead after {demo.ahead_after_s:.0f} s"
    return f"{when}: {scores}"


def main(argv: Sequence[str]) -> int:
    """Run the demos, print and write the results.

    Returns 0 if in at least 90 % of the demos the sharing nodes got ahead in time, else 1.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--demos", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=1)
    options = parser.parse_args(argv)
    console = Console()
    after: list[float | None] = []
    with ThreadPoolExecutor(options.at_once) as pool:
        watch = partial(watch_demo, nodes=options.nodes, minutes=options.minutes)
        demos = [pool.submit(watch) for _ in range(options.demos)]
        for number, demo in enumerate(as_completed(demos), start=1):
            after.append(demo.result().ahead_after_s)
            console.print(f"{number}/{options.demos} {_describe(demo.result())}", markup=False)
    ahead = sum(seconds is not None for seconds in after)
    console.print(
        f"{ahead} of {options.demos} demos were ahead within {options.minutes:g} minutes."
    )
    figures = {**vars(options), "ahead_after_s": after}
    write_results("demo-sharing", figures)
    return 0 if ahead >= 0.9 * options.demos else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
