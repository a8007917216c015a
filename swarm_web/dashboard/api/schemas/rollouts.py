"""Answers about rollouts: one question with all completions that a node generated for it."""

from typing import Any

from ninja import Schema
from pydantic import Field

from swarm_web.dashboard.api.schemas.fields import Model, Moment, Next, NodeName, SeasonName


class CompletionOut(Schema):
    """One decoded answer text, with the verdict of the site's own verifier."""

    text: str = Field(description="What the model wrote.", examples=["<answer>7</answer>"])
    finish_reason: str = Field(description="`stop` or `length`.", examples=["stop"])
    score: float | None = Field(description="The verifier's, from 0 to 1.", examples=[1.0])
    solved: bool | None = Field(description="Whether it counts as solved.", examples=[True])
    verdict: str | None = Field(description="The verdict in a word.", examples=["right"])


class RolloutOut(Schema):
    """One question with all completions that a node generated for it."""

    rollout: str = Field(description="The id that its node gave it.", examples=["310-2"])
    node: NodeName
    season: SeasonName
    model: Model
    step: int = Field(description="The node's training step then.", examples=[310])
    dataset: str = Field(description="A reasoning-gym dataset.", examples=["chain_sum"])
    spec: dict[str, Any] = Field(description="Makes the question again on any machine.")
    question: str = Field(description="What was asked.", examples=["What is 4 + 3?"])
    completions: list[CompletionOut]
    solved: int = Field(description="How many completions are right.", examples=[3])
    total: int = Field(description="L: how many completions there are.", examples=[8])
    published_at: Moment
    learned_by: int = Field(description="How many nodes trained on it.", examples=[4])
    learners: list[NodeName] = Field(description="The first of them.")


class RolloutsOut(Schema):
    """Rollouts of the archive, newest first."""

    items: list[RolloutOut]
    next: Next
