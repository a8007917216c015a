"""The read API's /rollouts: the archive, a sample of the rollouts that nodes shared."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Router
from pydantic import BeforeValidator, Field

from swarm_web.dashboard.api.fields import (
    Model,
    Moment,
    Next,
    NodeName,
    ReportSchema,
    SeasonName,
    at,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_rows
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.rollouts import list_archived
from swarm_web.relay.models import ArchivedRollout, Learned

router = Router(tags=["rollouts"])

Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_\-]*$")]
Author = Annotated[Name, Field(description="Only those that this node generated.")]
Learner = Annotated[Name, Field(description="Only those that this node trained on.")]
Dataset = Annotated[Name, Field(description="Only those of this dataset.")]
Verdict = Annotated[
    Literal["", "right", "wrong"],
    Field(description="Only those with at least one right completion, or with none."),
]


class CompletionOut(ReportSchema):
    """One completion, with the verdict of the site's own verifier."""

    text: str = Field(description="What the model wrote.", examples=["<answer>7</answer>"])
    finish_reason: str = Field(description="`stop` or `length`.", examples=["stop"])
    score: float | None = Field(description="The verifier's, from 0 to 1.", examples=[1.0])
    solved: bool | None = Field(description="Whether it counts as solved.", examples=[True])
    verdict: str | None = Field(description="The verdict in a word.", examples=["right"])


def _name_learners(learners: Sequence[Learned]) -> list[str]:
    return [learned.node.name for learned in learners]


class RolloutOut(ReportSchema):
    """One question with all completions that a node generated for it."""

    rollout: str = Field(description="The id that its node gave it.", examples=["310-2"])
    node: NodeName = at("author", "name")
    season: SeasonName = at("season", "name")
    model: Model
    step: int = Field(description="The node's training step then.", examples=[310])
    dataset: str = Field(description="A reasoning-gym dataset.", examples=["chain_sum"])
    spec: dict[str, Any] = Field(
        description="The task spec, which regenerates the question on any machine."
    )
    question: str = Field(description="What was asked.", examples=["What is 4 + 3?"])
    completions: list[CompletionOut]
    solved: int = Field(description="How many completions are right.", examples=[3])
    total: int = Field(description="L: how many completions there are.", examples=[8])
    published_at: Moment
    learned_by: int = Field(description="How many nodes trained on it.", examples=[4])
    learners: Annotated[list[NodeName], BeforeValidator(_name_learners)] = Field(
        description="The first of them."
    )


class RolloutsOut(ReportSchema):
    """Rollouts of the archive, newest first."""

    items: list[RolloutOut]
    next: Next


@read(router, "/rollouts", RolloutsOut)
def list_rollouts(
    request: HttpRequest,
    author: Author = "",
    learner: Learner = "",
    dataset: Dataset = "",
    outcome: Verdict = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> ListPage[ArchivedRollout]:
    """List the archive's rollouts with verdicts of the site's own verifier, newest first."""
    found = list_archived(author=author, learner=learner, dataset=dataset, outcome=outcome)
    return read_rows(found, cursor=cursor, limit=limit)
