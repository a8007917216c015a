"""Measure the time from a demo's Join page to a new node's first score, on a bare machine.

Each of the page's installation commands runs in an empty home directory with Python, uv and pipx,
and without a compiler. Then `swarm-node doctor` runs, and then the page's command that joins
without an account.

    python -m bench.joining [--only cpu-uv] [--torch-cpu FOLDER]

`--torch-cpu` names a folder with a wheel of PyTorch for the CPU, for machines that cannot reach
PyTorch's own package index.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.joining.lines import LINES, demo_to_join, try_line
from bench.report import write_results


def main(argv: Sequence[str]) -> int:
    """Try all installation commands, or those given by --only; print and write their figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=LINES)
    parser.add_argument("--torch-cpu", type=Path)
    options = parser.parse_args(argv)
    figures: dict[str, object] = {}
    with demo_to_join(torch_cpu=options.torch_cpu) as site:
        for line in options.only or LINES:
            figures[line] = try_line(site, line, torch_cpu=options.torch_cpu)
            Console().print(line, figures[line])
    write_results("joining", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
