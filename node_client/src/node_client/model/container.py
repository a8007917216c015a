"""What a container's limit leaves of the memory, which the system's own figures do not tell.

Linux keeps it in files of the process's control group (cgroup v2 or v1); elsewhere there are none.
"""

from dataclasses import dataclass
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Files:
    """Where a version of control groups tells the limit, what is used, and of what."""

    limit: str
    used: str
    parts: str
    cache: str


_VERSIONS = (
    _Files("memory.max", "memory.current", "memory.stat", cache="inactive_file"),
    _Files(
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        cache="total_inactive_file",
    ),
)


def left_in_container(folder: Path = CGROUP) -> int | None:
    """Return how many bytes the control group may still take; None where nothing limits it.

    What files were read or written lately counts as used, but the kernel drops it before it lets
    a process fail: it is left out, as Kubernetes' working set does.
    """
    for files in _VERSIONS:
        try:
            limit = _read_number(folder / files.limit)
            used = _read_number(folder / files.used)
            parts = (folder / files.parts).read_text(encoding="ascii").split()
            cached = int(parts[parts.index(files.cache) + 1])
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
        return max(0, limit - used + cached)
    return None


def _read_number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))
