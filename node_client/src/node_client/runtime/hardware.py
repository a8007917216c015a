"""What a node trains on, for owners who choose to show it."""

import os
import platform

import psutil
import torch

from swarm_protocol.messages import Hardware


def describe_hardware(device: torch.device) -> Hardware:
    """Return the device's name and bytes of memory: its own, or the machine's where it has none."""
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return Hardware(device=properties.name, memory=properties.total_memory)
    kind = "Apple GPU" if device.type == "mps" else f"CPU, {os.cpu_count() or 1} cores"
    return Hardware(
        device=f"{kind} ({platform.machine() or 'unknown'})",
        memory=psutil.virtual_memory().total,
    )
