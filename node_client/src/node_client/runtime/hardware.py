"""The machine that a node trains on, and the memory that the process uses."""

import os
import platform

import psutil
import torch

from node_client.display.events import MemoryUse
from swarm_protocol.messages import Hardware


def describe_hardware(device: torch.device) -> Hardware:
    """Return the device's name and its memory in bytes, for the coordinator.

    For a CPU or Apple GPU it is the machine's memory. The node sends this only if its owner allows
    it (`share_hardware`).
    """
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return Hardware(device=properties.name, memory=properties.total_memory)
    kind = "Apple GPU" if device.type == "mps" else f"CPU, {os.cpu_count() or 1} cores"
    return Hardware(
        device=f"{kind} ({platform.machine() or 'unknown'})",
        memory=psutil.virtual_memory().total,
    )


def measure_memory(device: torch.device) -> MemoryUse:
    """Return the memory in use, in bytes; `accelerator` is None on a CPU."""
    return MemoryUse(
        process=psutil.Process().memory_info().rss, accelerator=_accelerator_memory(device)
    )


def _accelerator_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.memory_reserved(device)
    if device.type == "mps":
        return torch.mps.driver_allocated_memory()
    return None
