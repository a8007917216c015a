"""`make bench-web`: how fast the public site is with 10,000 nodes and five million answers.

The databases are filled once, in var/bench-web/, and kept for the next run. Visitors and server
share the machine, so the figures include the visitors' load.
"""

import os
import sys

import django

from bench.report import Target, conclude
from bench.web.site import kept_databases

_PAGES = ("home", "leaderboard", "node", "round", "compare")
TARGETS = [
    *(
        Target(f"p99_ms_{page}", f"{page}: 99 of 100 within, 20 visitors", "ms", at_most=100)
        for page in _PAGES
    ),
    Target(
        "leaderboard_per_s",
        "leaderboard, asked without a pause, one process",
        "1/s",
        at_least=500,
    ),
    Target("first_view_kb", "first view, the largest page", "kB", at_most=500),
    Target("second_view_kb", "second view, the largest page", "kB", at_most=60),
    Target("csv_rows_per_s", "rewards.csv, a million rows", "1/s", at_least=50_000),
    Target("csv_rss_growth_mb", "rewards.csv, memory meanwhile", "MB", at_most=50),
    Target("parquet_rows_per_s", "rewards.parquet, a million rows", "1/s", at_least=50_000),
    Target("parquet_rss_growth_mb", "rewards.parquet, memory meanwhile", "MB", at_most=50),
    Target("live_delay_s_2000", "score lands → 2,000 browsers, median", "s", at_most=1),
    Target("live_cpu_s_2000", "server, for one update of 2,000 browsers", "s", at_most=1),
]


def main() -> int:
    """Measure everything, print it and write the results; return 1 if a target is missed."""
    with kept_databases() as settings:
        # The benchmark fills and changes the site's own tables, with the site's own code.
        os.environ |= settings
        django.setup()
        from bench.web.figures import measure_web

        figures = measure_web()
    return conclude("web", figures, TARGETS)


if __name__ == "__main__":
    sys.exit(main())
