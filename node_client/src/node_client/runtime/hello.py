"""A node's first message to its coordinator, and the arms that the node can change to."""

import os
import platform

import psutil
import torch

from node_client.errors import CoordinatorRefusedError
from node_client.model.policy import Policy
from node_client.settings.config import Settings
from node_client.swarm.client import new_id
from swarm_protocol.messages import Arm, Hardware, Hello
from swarm_protocol.version import CLIENT_VERSION, PROTOCOL_VERSION
from swarm_record.keys import public_key_of


def make_hello(settings: Settings, policy: Policy) -> Hello:
    """Return a node's first message to its coordinator.

    The message describes the node's hardware only if the owner allows that (`share_hardware`).
    """
    return Hello(
        id=new_id(),
        protocol=PROTOCOL_VERSION,
        client=CLIENT_VERSION,
        model=policy.name,
        tokenizer=policy.tokenizer_fingerprint,
        arm=settings.arm,
        parameters=policy.parameters,
        hardware=_describe_hardware(policy.device) if settings.share_hardware else None,
        key=public_key_of(settings.state.signing_key()),
    )


def check_arm(arm: Arm, *, own: Arm) -> None:
    """Raise CoordinatorRefusedError if exactly one of the two arms is `base`.

    `arm` is the arm that the coordinator names, and `own` is the arm in which this node runs. A
    running node can change between `swarm` and `isolated`, but not from or to `base` (untrained).
    """
    if (arm == "base") != (own == "base"):
        raise CoordinatorRefusedError(
            f"The coordinator has this node in the arm {arm}, but it runs in the arm {own}.",
            fix=f"Start it again with --arm {arm}, or ask the operator to change its arm.",
            code="arm.changed",
        )


def _describe_hardware(device: torch.device) -> Hardware:
    """Return the device's name and its memory in bytes, for the coordinator.

    For a CPU or Apple GPU, the memory is that of the machine.
    """
    if device.type in ("cuda", "xpu"):
        properties = torch.get_device_module(device).get_device_properties(device)
        return Hardware(device=properties.name, memory=properties.total_memory)
    kind = "Apple GPU" if device.type == "mps" else f"CPU, {os.cpu_count() or 1} cores"
    return Hardware(
        device=f"{kind} ({platform.machine() or 'unknown'})",
        memory=psutil.virtual_memory().total,
    )
