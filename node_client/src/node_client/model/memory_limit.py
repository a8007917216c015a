"""A limit on the GPU memory that this process takes, set by the owner of the machine."""

import torch

from node_client.errors import SettingsError


def limit_memory(device: str, fraction: float | None) -> None:
    """Take at most a part of a device's memory; beyond it torch raises its out-of-memory error.

    Raises SettingsError for a device on which torch has no such limit.
    """
    if fraction is None:
        return
    there = torch.cuda.is_available()
    chosen = torch.device(device) if device != "auto" else torch.device("cuda" if there else "cpu")
    if chosen.type != "cuda" or not there:
        raise SettingsError(
            "gpu_fraction limits the memory of CUDA devices, and this node would run on "
            + ("a processor." if chosen.type == "cpu" else f"{chosen}, or there is none here."),
            fix="Leave out gpu_fraction, or choose a CUDA device with --device.",
        )
    torch.cuda.set_per_process_memory_fraction(fraction, chosen)


def limited_free_bytes(device: torch.device) -> int:
    """Return what a CUDA device has left for this process within its limit."""
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return min(free, max(0, allowed - torch.cuda.memory_reserved(device)))
