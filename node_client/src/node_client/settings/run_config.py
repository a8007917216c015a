"""The settings of a run, except those of training (`train_config`).

The string under each field is its help text. Command-line options, environment variables,
`swarm-node.toml` and `swarm-node config show` are generated from the fields.
"""

from dataclasses import dataclass, field
from pathlib import Path

from node_client.settings.choices import Tracker
from node_client.settings.ranges import (
    Count,
    Device,
    Hours,
    MemoryShare,
    ModelName,
    NotNegative,
    Repository,
)
from swarm_protocol.messages import Arm


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of one run of the client, except those of training (`train_config`).

    A field with `repr=False` is a secret, never shown.
    """

    model: ModelName = "tiny"
    """A transformers causal LM by hub name or path, or the demo's: `tiny`, `small`."""

    arm: Arm = "swarm"
    """Train on rollouts of other nodes too (`swarm`), on own ones only (`isolated`), or not at all
    (`base`)."""

    token_file: Path | None = None
    """A file with the node's token."""

    token: str = field(default="", repr=False)
    """The node's token. Other users of this machine can read a command line, so prefer a file."""

    share_hardware: bool = False
    """Show the device's name and memory on the node's page."""

    state_dir: Path | None = None
    """Folder for token, checkpoints and progress. Without one, each coordinator has its own default
    folder."""

    config: Path | None = None
    """A file with settings, instead of swarm-node.toml here or in the state folder."""

    steps: Count | None = None
    """Stop after this number of steps; none trains without end."""

    step_seconds: NotNegative = 0.0
    """Minimum duration of a step in seconds; the node idles for the rest of it, so that other
    programs can use the machine. 0 never idles."""

    save_steps: Count = 50
    """Number of steps between checkpoints. The time between them is at least 30 s and at most 5
    minutes."""

    device: Device = "auto"
    """auto (the fastest available), cpu, cuda, cuda:1, mps …"""

    hours: Hours | None = None
    """Train only at these hours, in local time: 22-7, or several as 22:30-7,12-13; none trains at
    any time."""

    pause_on_battery: bool = False
    """Pause while the machine runs on battery."""

    gpu_fraction: MemoryShare | None = None
    """Use at most this fraction of the GPU's memory (CUDA), from 0 to 1; none uses all that is
    free."""

    auto_update: bool = False
    """Let `swarm-node service` install a newer client from the coordinator when it requires one."""

    wait_when_refused: bool = False
    """If the coordinator refuses the node, wait until stopped instead of exiting; for supervisors
    that restart after every exit."""

    plain: bool = False
    """Print lines instead of the panel."""

    json: bool = False
    """Print events as one JSON object per line; messages go to standard error."""

    report_to: Tracker = "none"
    """Send metrics to a tracker too, if it is installed. metrics.jsonl is always written."""

    project: str = "swarm-node"
    """The project of the run at wandb or trackio."""

    run_name: str | None = None
    """The name of the run at wandb or trackio; none lets the tracker choose one."""

    push_to_hub: Repository | None = None
    """Repository owner/name on the Hugging Face Hub to which the model is uploaded whenever its
    held-out score (without one, its judge score) has improved; none does not upload."""

    hub_private_repo: bool = False
    """Create that repository as private."""

    hub_interval: Count = 60
    """Minimum time between two uploads, in minutes."""
