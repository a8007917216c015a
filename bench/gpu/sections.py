"""Run sections in a separate process; after one fails, run the rest in a new process."""

import gc
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import torch
from rich.console import Console

from bench.gpu.plan import Section
from bench.isolated_process import (
    IsolatedProcess,
    IsolatedProcessError,
    isolated_process,
    receive_message,
)

_START_TIMEOUT_S = 120.0


@dataclass
class SectionResults:
    """What the sections returned, or why they failed, by name of the section."""

    results: dict[str, Any] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_sections(sections: Iterable[Section], *, until: float, longest_s: float) -> SectionResults:
    """Run the sections, each for at most `longest_s` seconds, until the time `until`.

    `until` is a time of `time.monotonic()`. Sections that have not ended by then count as failed.
    """
    outcome, left = SectionResults(), list(sections)
    while left and time.monotonic() < until:
        try:
            with isolated_process("bench.gpu.sections:serve") as process:
                process.receive(within_s=_START_TIMEOUT_S)
                while left and (rest_s := until - time.monotonic()) > 0:
                    result = _run(left[0], process, within_s=min(longest_s, rest_s))
                    outcome.results[left.pop(0).name] = result
        except IsolatedProcessError as problem:
            outcome.failed[left.pop(0).name] = str(problem)
            Console().print(f"    failed: {problem}", style="red", highlight=False)
    outcome.failed |= {section.name: "the time was over before it" for section in left}
    return outcome


def serve(connection: Connection) -> None:
    """In the isolated process: run each received section and send back its result."""
    connection.send("ready")
    while isinstance(section := receive_message(connection), Section):
        module, function = section.run.split(":")
        connection.send(getattr(import_module(module), function)(**section.arguments))
        gc.collect()
        torch.cuda.empty_cache()  # the next section measures its own memory


def _run(section: Section, process: IsolatedProcess, *, within_s: float) -> Any:
    Console().print(f"==> {section.name}", highlight=False)
    start = time.monotonic()
    process.send(section)
    result = process.receive(within_s=within_s)
    Console().print(f"    {time.monotonic() - start:.1f} s", highlight=False)
    return result
