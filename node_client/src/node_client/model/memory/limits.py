"""Memory limits of a GPU (set by the owner) and of a container; the return of freed memory."""

import ctypes
import sys
from contextlib import suppress
from pathlib import Path

import torch

from node_client.errors import SettingsError
from node_client.model.devices import device_named

CGROUP = Path("/sys/fs/cgroup")
# From glibc's malloc.h.
_M_MMAP_THRESHOLD = -3
# glibc's initial threshold. Unless it is set, glibc raises it to 32 MiB when blocks are freed.
_THRESHOLD = 128 * 1024


def limit_memory(device: str, fraction: float | None) -> None:
    """Limit this process to a fraction of a CUDA device's memory.

    Above the limit, torch raises OutOfMemoryError. A `fraction` of None sets no limit. The `device`
    `auto` is the CUDA device, if there is one. Raises SettingsError if the device is unknown, is
    missing or is not a CUDA device.
    """
    if fraction is None:
        return
    has_cuda = torch.cuda.is_available()
    chosen = device_named(("cuda" if has_cuda else "cpu") if device == "auto" else device)
    if chosen.type != "cuda" or not has_cuda:
        raise SettingsError(
            "gpu_fraction limits the memory of CUDA devices, and this node would run on "
            + ("a processor." if chosen.type == "cpu" else f"{chosen}, or there is none here."),
            fix="Leave out gpu_fraction, or choose a CUDA device with --device.",
        )
    torch.cuda.set_per_process_memory_fraction(fraction, chosen)


def free_within_limit(device: torch.device) -> int:
    """Return the bytes that a CUDA device has left for this process within its limit."""
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return min(free, max(0, allowed - torch.cuda.memory_reserved(device)))


# The files of the limit, of the memory in use and of its parts, and the part that is file cache.
_CGROUP_FILES = (
    ("memory.max", "memory.current", "memory.stat", "inactive_file"),
    (
        "memory/memory.limit_in_bytes",
        "memory/memory.usage_in_bytes",
        "memory/memory.stat",
        "total_inactive_file",
    ),
)


def free_in_container(folder: Path = CGROUP) -> int | None:
    """Return the bytes that the control group may still allocate; None if no limit can be read.

    The kernel counts the file cache as used, but drops it before an allocation fails. Here the
    inactive part of this cache counts as free, as in Kubernetes' working set. Only Linux has
    control groups (v1 and v2).
    """
    for limit_file, used_file, parts_file, cache in _CGROUP_FILES:
        try:
            limit = _read_number(folder / limit_file)
            used = _read_number(folder / used_file)
            parts = (folder / parts_file).read_text(encoding="ascii").split()
            cached = int(parts[parts.index(cache) + 1])
        except (OSError, ValueError):  # the file is missing or says "max"
            continue
        return max(0, limit - used + cached)
    return None


def _read_number(path: Path) -> int:
    return int(path.read_text(encoding="ascii"))


def return_freed_memory() -> None:
    """Let glibc return freed blocks above 128 KiB to the system at once.

    Without this call the process keeps the memory of freed activations that lie between gradients,
    about 1 GB for half a billion parameters. The call slows small models down, because the system
    zeroes each new block. Does nothing without glibc.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # musl has neither the name nor the call
            ctypes.CDLL("libc.so.6").mallopt(_M_MMAP_THRESHOLD, _THRESHOLD)
