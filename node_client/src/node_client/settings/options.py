"""The command line's options, each written once."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from swarm_protocol.messages import Arm

Url = Annotated[str, typer.Argument(help="The coordinator, such as https://swarm.example.org")]
OptionalUrl = Annotated[str | None, typer.Argument(help="The coordinator, to test it too")]
RoundNumber = Annotated[int, typer.Argument(min=1, help="The round, as its page numbers it")]
Token = Annotated[
    str | None,
    typer.Option(help="The node's token; others on this machine can see it, so prefer a file"),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(envvar="SWARM_TOKEN_FILE", help="A file that holds the node's token"),
]
Model = Annotated[
    str | None,
    typer.Option(
        envvar="SWARM_MODEL",
        help="A transformers causal LM by name or path, or the demo's: tiny, small",
        show_default="as last time, else tiny",
    ),
]
ArmChoice = Annotated[
    Arm | None,
    typer.Option(
        envvar="SWARM_ARM",
        help="Mix in rollouts of other nodes, train on own ones only, or (base) do not train",
        show_default="as last time, else swarm",
    ),
]
# Hidden: training alone has no arm. It is read so that nobody trains who asked not to.
OfflineArm = Annotated[Arm | None, typer.Option("--arm", envvar="SWARM_ARM", hidden=True)]
StateFolder = Annotated[
    Path | None,
    typer.Option(
        "--state-dir",
        envvar="SWARM_STATE_DIR",
        help="Where token, checkpoints and progress are kept",
        show_default="the user's state folder, one for each coordinator",
    ),
]
Steps = Annotated[
    int | None, typer.Option(min=1, help="Stop after so many steps", show_default="train on")
]
Plain = Annotated[bool, typer.Option("--plain", help="Print lines instead of the panel")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, cuda:1, mps …")]
SaveSteps = Annotated[int, typer.Option(min=1, help="Save a checkpoint every so many steps")]

_SEASON = "as the season says"
_PANEL = "Training (names as in trl)"

NumGenerations = Annotated[
    int | None,
    typer.Option(
        min=2, help="Completions for each question", show_default=_SEASON, rich_help_panel=_PANEL
    ),
]
Local = Annotated[
    int | None,
    typer.Option(
        min=0, help="Own rollouts in a training set", show_default=_SEASON, rich_help_panel=_PANEL
    ),
]
External = Annotated[
    int | None,
    typer.Option(
        min=0, help="Rollouts of others in it", show_default=_SEASON, rich_help_panel=_PANEL
    ),
]
LearningRate = Annotated[
    float | None,
    typer.Option(
        min=0.0, help="Of AdamW", show_default="by the model's size", rich_help_panel=_PANEL
    ),
]
MaxCompletionLength = Annotated[
    int | None,
    typer.Option(
        min=1, help="Tokens of a completion", show_default=_SEASON, rich_help_panel=_PANEL
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option(min=0.0, help="Of sampling", show_default="1.0", rich_help_panel=_PANEL),
]
TopP = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Nucleus sampling", show_default="1.0", rich_help_panel=_PANEL
    ),
]
NumIterations = Annotated[
    int | None,
    typer.Option(
        min=1, help="Passes over each training set", show_default="1", rich_help_panel=_PANEL
    ),
]
Reward = Annotated[
    Literal["binary", "partial"] | None,
    typer.Option(
        help="1 for solved and else 0, or partial credit",
        show_default="binary",
        rich_help_panel=_PANEL,
    ),
]
