"""How much memory this process holds, here and on its accelerator."""

import psutil
import torch

from node_client.display.events import Vitals


def measure_vitals(device: torch.device) -> Vitals:
    """Return the memory in use now, in bytes; `accelerator` is None on a CPU."""
    return Vitals(memory=psutil.Process().memory_info().rss, accelerator=_accelerator(device))


def _accelerator(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
    return None
