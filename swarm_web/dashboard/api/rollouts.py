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
    describe,
)
from swarm_web.dashboard.api.paging import Cursor, Limit, ListPage, read_rows
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.reports.rollouts import list_archived
from swarm_web.relay.models import ArchivedRollout, Learned

router = Router(tags=["rollouts"])

Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_\-]*$")]
Author = Annotated[Name, describe("Only those that this node generated.")]
Learner = Annotated[Name, describe("Only those that this node trained on.")]
Dataset = Annotated[Name, describe("Only those of this dataset.")]
Verdict = Annotated[
    Literal["", "right", "wrong"],
    describe("Only those with at least one right completion, or with none."),
]


class CompletionOut(ReportSchema):
    """One completion, with the verdict of the site's own verifier."""

    text: str = describe("What the model wrote.", "<answer>7</answer>")
    finish_reason: str = describe("`stop` or `length`.", "stop")
    score: float | None = describe("The verifier's, from 0 to 1.", 1.0)
    solved: bool | None = describe("Whether it counts as solved.", True)
    verdict: str | None = describe("The verdict in a word.", "right")


def _name_learners(learners: Sequence[Learned]) -> list[str]:
    return [learned.node.name for learned in learners]


class RolloutOut(ReportSchema):
    """One question with all completions that a node generated for it."""

    rollout: str = describe("The id that its node gave it.", "310-2")
    node: NodeName = at("author.name")
    season: SeasonName = at("season.name")
    model: Model
    step: int = describe("The node's training step then.", 310)
    dataset: str = describe("A reasoning-gym dataset.", "chain_sum")
    spec: dict[str, Any] = describe("The task spec, which regenerates the question on any machine.")
    question: str = describe("What was asked.", "What is 4 + 3?")
    completions: list[CompletionOut]
    solved: int = describe("How many completions are right.", 3)
    total: int = describe("L: how many completions there are.", 8)
    published_at: Moment
    learned_by: int = describe("How many nodes trained on it.", 4)
    learners: Annotated[list[NodeName], BeforeValidator(_name_learners)] = describe(
        "The first of them."
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
    """List the rollouts of the archive that the site's own verifier has scored, newest first."""
    found = list_archived(author=author, learner=learner, dataset=dataset, outcome=outcome)
    return read_rows(found, cursor=cursor, limit=limit)
