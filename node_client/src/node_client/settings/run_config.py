"""What a participant may set about a run, apart from how it trains (`train_config`).

The docstring under each field is its help. Command line, environment, `swarm-node.toml` and
`swarm-node config show` are made from the fields, so a new one needs no other place.
"""

from dataclasses import dataclass, field
from pathlib import Path

from node_client.settings.choices import Tracker
from node_client.settings.ranges import (
    Count,
    Device,
    Hours,
    MemoryShare,
    NotNegative,
    Repository,
)
from swarm_protocol.messages import Arm


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run of the client. Fields that are left out of `repr` are secrets and never shown."""

    model: str = "tiny"
    """A transformers causal LM by hub name or path, or the demo's: `tiny`, `small`."""

    arm: Arm = "swarm"
    """Mix in rollouts of other nodes, train on own ones only, or (`base`) do not train."""

    token_file: Path | None = None
    """A file that holds the node's token."""

    token: str = field(default="", repr=False)
    """The node's token. Others on this machine can read a command line, so prefer a file."""

    share_hardware: bool = False
    """Tell the coordinator the device's name and memory, to be shown on the node's page."""

    state_dir: Path | None = None
    """Where token, checkpoints and progress are kept; none is the user's own folder for each
    coordinator."""

    config: Path | None = None
    """A file with settings, in the place of swarm-node.toml here or in the state folder."""

    steps: Count | None = None
    """Stop after so many steps; none trains on."""

    step_seconds: NotNegative = 0.0
    """Minimum duration of a step in seconds; the node idles for the rest of it, which leaves the
    machine to other programs. 0 never idles."""

    save_steps: Count = 50
    """Save a checkpoint every so many steps, but between every 30 s and every 5 minutes."""

    device: Device = "auto"
    """auto (the fastest there is), cpu, cuda, cuda:1, mps …"""

    hours: Hours | None = None
    """Train only at these hours of this machine's clock: 22-7, or several as 22:30-7,12-13; none
    trains at any time."""

    pause_on_battery: bool = False
    """Pause while the machine runs on its battery."""

    gpu_fraction: MemoryShare | None = None
    """Take at most this part of the GPU's memory (CUDA), from 0 to 1; none takes what is free."""

    auto_update: bool = False
    """Let `swarm-node service` install a newer client from the coordinator when it asks for one."""

    wait_when_refused: bool = False
    """After a refusal wait until stopped instead of exiting, for whatever restarts a node in any
    case."""

    plain: bool = False
    """Print lines instead of the panel."""

    json: bool = False
    """Print one JSON object a line instead, for machines; words go to standard error."""

    report_to: Tracker = "none"
    """Draw metrics with a tracker too, if it is installed. metrics.jsonl is always written."""

    project: str = "swarm-node"
    """The project at wandb or trackio that runs are put in."""

    run_name: str | None = None
    """The run's name at wandb or trackio; none lets it choose one."""

    push_to_hub: Repository | None = None
    """Put the model on the Hugging Face Hub as owner/name whenever its held-out score, or else
    the judge's, has improved; none does not."""

    hub_private_repo: bool = False
    """Make that repository private when it is made."""

    hub_interval: Count = 60
    """Put it there at most once in so many minutes."""
