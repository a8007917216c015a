"""`make bench-judge`: how fast a round of a thousand nodes is received, graded, closed and ranked.

The site is started as by `make up`. The simulated nodes run on the same machine, so they slow the
measured site.
"""

import sys

from bench.report import Target, conclude
from bench.site import site_with_tables

TARGETS = [
    Target("close_seconds_1000x16", "last answer in → closed and ranked", "s", at_most=10),
    Target("answers_per_s", "answers, socket → durable row", "1/s", at_least=2000),
    Target("grading_ratio", "grading rate : bare scorer's, per core", "", at_least=0.5),
    Target("refresh_s_10k_nodes_1m_answers", "leaderboard refresh, database", "s", at_most=1),
]


def main() -> int:
    """Measure everything, print it and write the results; return 1 if a target is missed."""
    with site_with_tables() as site:
        from bench.judge.figures import measure_judge

        figures = measure_judge(site.socket)
    return conclude("judge", figures, TARGETS)


if __name__ == "__main__":
    sys.exit(main())
