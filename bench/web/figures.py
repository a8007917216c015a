"""Measure the public site. Django must be set up with the settings from `kept_databases`."""

import asyncio
import random
import statistics
from collections.abc import Callable
from datetime import timedelta

from django.core.management import call_command
from django.utils import timezone
from rich.console import Console

from bench.report import print_table
from bench.web.downloads import download
from bench.web.live import BROWSERS, measure_updates
from bench.web.site import BenchServer, serving
from bench.web.visitors import VISITORS, measure_size, measure_throughput, percentile, visit
from judge.models import Round, Score, Season, Standing, Window
from swarm_web.nodes.models import Node

_SECONDS_A_PAGE = 30.0
_WARM_UP_S = 2.0
_RUSH_S = 6.0
_RUSHING = 4
_PLACES = 500

Draw = Callable[[random.Random], str]


def measure_web() -> dict[str, float]:
    """Measure pages, downloads and live updates, and return all figures by name."""
    prepare_data()
    figures: dict[str, float] = {}
    with serving(workers=2) as server:
        figures |= measure_pages(server)
    with serving(workers=1) as server:
        per_s = measure_throughput(server.port, "/leaderboard/", visitors=_RUSHING, seconds=_RUSH_S)
        figures["leaderboard_per_s"] = per_s
        figures |= measure_downloads(server)
    with serving(workers=1) as server:
        figures |= measure_live(server)
    return figures


def prepare_data() -> None:
    """Fill the databases unless an earlier run has filled them.

    Then change times in them: for the next hour, the demo nodes that have not left count as
    connected, and the open round stays open.
    """
    if not Node.objects.exists():
        call_command("seed_demo_data", size="large")
    soon = timezone.now() + timedelta(hours=1)
    there = Node.objects.filter(left_at=None).exclude(last_seen=None)
    there.update(last_seen=soon)
    running = Round.objects.filter(phase=Round.Phase.OPEN)
    running.update(closes_at=soon, score_by=soon + timedelta(hours=2))


# ---- pages


def measure_pages(server: BenchServer) -> dict[str, float]:
    """Let visitors load each kind of page, and return the times and sizes by name."""
    figures: dict[str, float] = {}
    rows, first, second = [], [], []
    for name, draw in list_pages().items():
        visit(server.port, draw, seconds=_WARM_UP_S)
        taken = visit(server.port, draw, seconds=_SECONDS_A_PAGE)
        sent = measure_size(server.port, draw(random.Random(0)))
        first.append(sent[0])
        second.append(sent[1])
        figures[f"p50_ms_{name}"] = percentile(taken, 50)
        figures[f"p99_ms_{name}"] = percentile(taken, 99)
        cells = (figures[f"p50_ms_{name}"], figures[f"p99_ms_{name}"], *sent)
        rows.append((name, *(f"{cell:.0f}" for cell in cells)))
    title = f"{VISITORS} visitors, a page a second each; two processes"
    print_table(title, ("page", "median ms", "p99 ms", "first view kB", "second view kB"), rows)
    return figures | {"first_view_kb": max(first), "second_view_kb": max(second)}


def list_pages() -> dict[str, Draw]:
    """Return the kinds of pages, each with a function that draws the path of one page."""
    season = Season.objects.get(state=Season.State.RUNNING)
    standings = Standing.objects.filter(season=season, window=Window.SEASON).exclude(rank_low=None)
    best = standings.order_by("rank_low", "-score")
    nodes = list(best.values_list("node__name", flat=True)[:_PLACES])
    closed = Round.objects.filter(season=season, phase=Round.Phase.CLOSED)
    rounds = list(closed.order_by("-number").values_list("number", flat=True)[:_PLACES])
    return {
        "home": lambda _: "/",
        "leaderboard": lambda choice: f"/leaderboard/?window={choice.choice(Window.values)}",
        "node": lambda choice: f"/nodes/{choice.choice(nodes)}/",
        "round": lambda choice: f"/rounds/{choice.choice(rounds)}/",
        "compare": lambda _: "/compare/",
    }


# ---- downloads and live updates


def measure_downloads(server: BenchServer) -> dict[str, float]:
    """Download all rewards in each format, and return the figures by name."""
    count = Score.objects.filter(round__phase=Round.Phase.CLOSED).count()
    figures: dict[str, float] = {"download_rows": count}
    rows = []
    for suffix in ("csv", "parquet", "jsonl"):
        found = download(server, suffix, rows=count)
        figures[f"{suffix}_rows_per_s"] = found.rows_per_s
        figures[f"{suffix}_rss_growth_mb"] = found.growth_mb
        cells = (f"{found.rows_per_s:,.0f}", f"+{found.growth_mb:.0f}", f"{found.size_mb:.0f}")
        rows.append((suffix, *cells))
    title = f"{count:,} rewards; one process"
    print_table(title, ("format", "rows/s", "memory MB", "file MB"), rows)
    return figures


def measure_live(server: BenchServer) -> dict[str, float]:
    """Measure how fast a new score reaches all browsers, and the server's CPU time per update."""
    updates = asyncio.run(measure_updates(server))
    delays = [update.delay_s for update in updates]
    figures = {
        "live_delay_s_2000": statistics.median(delays),
        "live_delay_s_2000_worst": max(delays),
        "live_cpu_s_2000": statistics.mean(update.cpu_s for update in updates),
    }
    Console().print(
        f"{BROWSERS:,} browsers, {len(updates)} updates: to the last browser after "
        f"{figures['live_delay_s_2000']:.2f} s (median), {max(delays):.2f} s (worst); "
        f"{figures['live_cpu_s_2000']:.2f} CPU seconds of the server each"
    )
    return figures
