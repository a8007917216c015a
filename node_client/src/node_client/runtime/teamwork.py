"""A node of several processes: who leads, who follows, and how they come and go together."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch

from node_client.errors import MemoryExhaustedError, NodeError
from node_client.learning.team import LaunchedTeam, Team
from node_client.learning.team_messages import Dismiss, follow
from node_client.model.memory.limits import limit_memory
from node_client.model.policy import Policy
from node_client.settings.config import Settings


def is_launched() -> bool:
    """Tell whether a launcher started this process as one of several (torchrun's environment)."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


def run_follower(settings: Settings, team: LaunchedTeam) -> None:
    """Work for the leader until it dismisses this process or is gone. Raises NodeError.

    A terminal's Ctrl-C and a launcher's SIGTERM reach every process; only the leader heeds them,
    because it needs the others to finish its step.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    device = device_of(settings, team)
    limit_memory(device, settings.gpu_fraction)
    with suppress(MemoryExhaustedError):  # all processes raise it together, and the leader tells it
        follow(team, Policy.load(settings.model, device=device))
    torch.distributed.destroy_process_group()


@contextmanager
def leading(team: Team) -> Iterator[None]:
    """Dismiss the followers at the end, whatever it was.

    Followers that wait for this process in the middle of an order hear nothing: the launcher ends
    them when this process ends.
    """
    try:
        yield
    finally:
        if isinstance(team, LaunchedTeam) and team.is_idle:
            with suppress(NodeError):  # one that is gone needs no word
                team.send(Dismiss())
            torch.distributed.destroy_process_group()


def device_of(settings: Settings, team: Team) -> str:
    """Return the device of this process: its own among several, or what was asked for."""
    return str(team.device) if isinstance(team, LaunchedTeam) else settings.device
