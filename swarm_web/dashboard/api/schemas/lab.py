"""Answers about the lab: its summary, its reports, and one report as the lab wrote it."""

from typing import Annotated, Any

from ninja import Schema
from pydantic import Field

Name = Annotated[str, Field(description="As in its address.", examples=["sharing"])]
Phase = Annotated[
    str,
    Field(description="`confirmatory`, or `exploratory`: not evidence.", examples=["confirmatory"]),
]
Question = Annotated[str, Field(description="What was asked.", examples=["Does sharing help?"])]
Headline = Annotated[str, Field(description="What the numbers say, in English.")]
Baseline = Annotated[
    str, Field(description="The arm that others are compared with.", examples=["8/0"])
]
Rounds = Annotated[int, Field(description="Training rounds of a run.", examples=[300])]
Seeds = Annotated[
    list[int], Field(description="Seeds that every arm was run with.", examples=[[11, 12, 13]])
]


class LabItem(Schema):
    """One published report."""

    name: Name
    question: Question
    phase: Phase
    shipped: bool = Field(
        description="Made by this project; false: by the site's operator.", examples=[True]
    )
    headline: Headline
    baseline: Baseline
    arms: list[str] = Field(description="Names of all arms.", examples=[["8/0", "4/4"]])
    rounds: Rounds
    seeds: Seeds


class LabOut(Schema):
    """What the lab answers, and the reports that it answers from."""

    verdict: str = Field(
        description="`helps`, `hurts`, `unclear`, `explored` (not evidence) or `unmeasured`.",
        examples=["helps"],
    )
    summary: dict[str, Any] | None = Field(
        description="Each question's findings and a sentence: `summary.json` as it stands."
    )
    items: list[LabItem]


class LabReport(Schema):
    """A `report.json` as it stands; docs/lab.md says how its numbers are computed."""

    format: int = Field(description="Of the file.", examples=[1])
    name: str = Field(description="The experiment's.", examples=["sharing"])
    question: Question
    phase: Phase
    design: str = Field(description="The fingerprint of the experiment without its arms.")
    settings: str = Field(description="The experiment's TOML file.")
    baseline: Baseline
    rounds: Rounds
    seeds: Seeds
    headline: Headline
    notes: list[str] = Field(description="What to know before believing a figure.")
    arms: list[dict[str, Any]] = Field(description="Outcomes, costs and curves of each arm.")
    comparisons: list[dict[str, Any]] = Field(description="Arms against the baseline.")
    onsets: list[dict[str, Any]] = Field(description="Differences over rounds.")
    paper: list[dict[str, Any]] = Field(description="The paper's own figures.")
    differences: list[str] = Field(description="How the set-up is unlike the paper's.")
    commands: list[str] = Field(description="They reproduce the report.")
    runs: list[dict[str, Any]] = Field(description="The runs and the hashes of their lines.")
