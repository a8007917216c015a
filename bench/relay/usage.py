"""The processes of each part of a running site, and the CPU time that they use.

The parameter `launcher` is the pid of the site's launcher. Processes that do not belong to another
part, such as those that build the client, form the part `launcher`.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress

import psutil

from bench.site import await_true

# A text that the command line of each part's process contains.
_PARTS = {
    "web": "uvicorn",
    "worker": " worker ",
    "beat": " beat ",
    "postgres": "postgres",
    "valkey": "valkey",
}


def read_usage(launcher: int) -> dict[str, float]:
    """Return the CPU seconds that each part of the site has used since its start."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for part, process in _read_parts(launcher):
        # The time of an ended process is included in its parent's.
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            seconds[part] += times.user + times.system
            seconds[part] += times.children_user + times.children_system
    return seconds


def find_processes(launcher: int, part: str) -> list[psutil.Process]:
    """Return the running processes of `part`: web, worker, beat, postgres, valkey or launcher."""
    return [process for found, process in _read_parts(launcher) if found == part]


def _read_parts(launcher: int) -> Iterator[tuple[str, psutil.Process]]:
    """Yield the part and the process of each descendant of the launcher."""
    for process in psutil.Process(launcher).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            yield _find_part(process), process


def _find_part(process: psutil.Process) -> str:
    """Return the part of a process, or of its nearest ancestor with a part; else `launcher`."""
    for each in [process, *process.parents()]:
        line = f" {' '.join(each.cmdline())} "
        for part, word in _PARTS.items():
            if word in line:
                return part
    return "launcher"


def await_started(launcher: int) -> None:
    """Wait until the site's one-time steps are done, such as building the client.

    Raises TimeoutError after two minutes.
    """
    await_true(
        lambda: not find_processes(launcher, "launcher"), "the site still starts", within_s=120.0
    )


def pin_to_core(core: int, launcher: int) -> None:
    """Restrict the launcher, its descendants and all processes that they start later to `core`."""
    for process in [psutil.Process(launcher), *psutil.Process(launcher).children(recursive=True)]:
        process.cpu_affinity([core])
