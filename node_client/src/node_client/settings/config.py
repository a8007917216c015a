"""What a run was asked to do, put together from options, environment and memory."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypedDict

from node_client.errors import SettingsError
from node_client.site import Site
from node_client.storage.state import Remembered, StateDir
from swarm_protocol.messages import Arm

DEFAULT_MODEL = "tiny"
DEFAULT_ARM: Arm = "swarm"


class TrainingOptions(TypedDict, total=False):
    """Those of the trainer's settings that a participant may give (`TrainConfig`, trl's names)."""

    num_generations: int
    local: int
    external: int
    learning_rate: float
    max_completion_length: int
    temperature: float
    top_p: float
    num_iterations: int
    reward: Literal["binary", "partial"]


@dataclass(frozen=True)
class Settings:
    """Everything that a run needs to know. `site` is None for training without a coordinator.

    `training` holds only those options that were given; the season decides about the others.
    """

    state: StateDir
    model: str
    arm: Arm
    site: Site | None = None
    token: str = field(default="", repr=False)
    steps: int | None = None
    plain: bool = False
    device: str = "auto"
    save_steps: int = 50
    training: TrainingOptions = field(default_factory=TrainingOptions)


def choose_token(
    *, option: str | None, file: Path | None, environment: str | None, remembered: str
) -> str:
    """Return the first token there is, in this order. Raises SettingsError when there is none."""
    token = find_token(option=option, file=file, environment=environment, remembered=remembered)
    if not token:
        raise SettingsError(
            "No token was given, and none is remembered for this coordinator.",
            fix="Set SWARM_TOKEN, or write the token into a file and use --token-file FILE.",
        )
    return token


def find_token(
    *, option: str | None, file: Path | None, environment: str | None, remembered: str
) -> str:
    """Return the first token there is, or an empty string. Raises SettingsError when unusable."""
    token = option or (_read_token(file) if file else None) or environment or remembered
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsError(
            "The token holds characters that no token has.",
            fix="Copy it again, without quotes, spaces or line breaks.",
        )
    return token


def choose_model(option: str | None, remembered: Remembered) -> str:
    """Return the model to train: as asked, as last time, or the demo's."""
    return option or remembered.model or DEFAULT_MODEL


def choose_arm(option: Arm | None, remembered: Remembered) -> Arm:
    """Return the arm to ask for: as asked, as last time, or `swarm`."""
    return option or remembered.arm or DEFAULT_ARM


def check_steps(steps: int | None, *, arm: Arm) -> None:
    """Check that a run which should end after some steps makes any. Raises SettingsError."""
    if arm == "base" and steps is not None:
        raise SettingsError(
            "A base node makes no steps, so --steps would never end it.",
            fix="Leave out --steps; Ctrl-C stops the node.",
        )


def check_offline_arm(arm: Arm | None) -> None:
    """Check that nobody trains who asked not to. Raises SettingsError."""
    if arm == "base":
        raise SettingsError(
            "A base node never trains, so there is nothing that it could do offline.",
            fix="Leave out --arm (and SWARM_ARM), or answer a judge with `join URL --arm base`.",
        )


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"The token file {path} cannot be read: {problem}.",
            fix="Check the path and who may read it.",
        ) from problem
    if not token:
        raise SettingsError(
            f"The token file {path} is empty.", fix="Write the node's token into it."
        )
    return token
