"""Types with limits for the fields of RunConfig and TrainConfig; msgspec checks the values."""

from typing import Annotated

from msgspec import Meta

from swarm_protocol.messages import MAX_REQUESTED

Count = Annotated[int, Meta(ge=1)]
"""A whole number of at least 1."""

Natural = Annotated[int, Meta(ge=0)]
"""A whole number of at least 0."""

Candidates = Annotated[int, Meta(ge=1, le=MAX_REQUESTED)]
"""Rollouts that one request to the pool may ask for."""

GroupSize = Annotated[int, Meta(ge=2)]
"""Number of completions in a group: at least 2."""

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]

Share = Annotated[float, Meta(ge=0, le=1)]
"""A number from 0 to 1."""

MemoryShare = Annotated[float, Meta(gt=0, le=1)]
"""A fraction of a memory: more than 0, at most 1."""

ModelName = Annotated[str, Meta(pattern=r"\S", description="the name or folder of a model")]
"""A model. An empty text would mean the current folder."""

_TIME = r"(([01]?\d|2[0-3])(:[0-5]\d)?|24(:00)?)"
_SPAN = rf"\s*{_TIME}-{_TIME}\s*"

Hours = Annotated[
    str,
    Meta(
        pattern=rf"^{_SPAN}(,{_SPAN})*$",
        description="spans of hours such as 22-7 or 22:30-7,12-13",
    ),
]
"""Training hours (`settings.hours`)."""

Mix = Annotated[
    str, Meta(pattern=r"^(season|auto|\d+/\d+)$", description="season, auto or I/J such as 4/4")
]
"""Numbers of local and external rollouts in a training set."""

Device = Annotated[
    str,
    Meta(
        pattern=r"^(auto|cpu|cuda(:\d+)?|mps|xpu)$",
        description="auto, cpu, cuda, cuda:N, mps or xpu",
    ),
]
"""A device of torch; `auto` is the fastest available."""

Repository = Annotated[
    str, Meta(pattern=r"^[\w.-]+/[\w.-]+$", description="a repository such as owner/name")
]

# A plug-in: a class of the participant's own.
_OWN = r"[\w.]+:\w+"

SAMPLINGS = (
    *("uniform", "advantage", "reward", "by-node", "by-task", "fresh", "variance", "novel"),
    "confidence",
)
_SAMPLING = "|".join([*SAMPLINGS, _OWN])

SamplingName = Annotated[
    str,
    Meta(
        pattern=rf"^({_SAMPLING})(\+({_SAMPLING}))*$",
        description=f"{', '.join(SAMPLINGS)}, some joined by +, or package.module:Class",
    ),
]
"""How external rollouts, or own ones to share, are chosen (`learning.external.sampling`)."""

REWARDS = ("binary", "partial", "format", "generative")

RewardName = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join([*REWARDS, _OWN])})$",
        description=f"{', '.join(REWARDS)}, or package.module:Class",
    ),
]
"""Reward of a completion (`learning.rewards`)."""

PolicyLossName = Annotated[
    str, Meta(pattern=rf"^(clipped|{_OWN})$", description="clipped, or package.module:Class")
]
"""The loss (`learning.update.losses`)."""
