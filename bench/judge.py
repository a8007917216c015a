"""`make bench-judge`: how fast a round of a thousand nodes is received, graded, closed and ranked.

The site is started as by `make up`. The simulated nodes share the machine with it, so the figures
include their load.
"""

import os
import sys

import django

from bench.report import Target, print_targets, write_results
from bench.site import running_site

TARGETS = [
    Target("close_seconds_1000x16", "last answer in → closed and ranked", "s", at_most=10),
    Target("answers_per_s", "answers, socket → durable row", "1/s", at_least=2000),
    Target("grading_ratio", "grading rate : bare scorer's, per core", "", at_least=0.5),
    Target("refresh_s_10k_nodes_1m_answers", "leaderboard refresh, database", "s", at_most=1),
]


def main() -> int:
    """Measure everything, print it and write the results; return 1 if a target is missed."""
    with running_site() as site:
        # The benchmark reads and fills the site's own tables, with the site's own code.
        os.environ |= {**site.settings, "LOG_LEVEL": "ERROR"}
        django.setup()
        from bench.judge_figures import measure_judge

        figures = measure_judge(site.socket)
    kept = print_targets(figures, TARGETS)
    print(f"written to {write_results('judge', figures)}")  # noqa: T201 - a command's output
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
