"""Rollouts of the archive: a sample of what nodes shared."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from swarm_web.dashboard.api.bodies.rollouts import describe_rollout
from swarm_web.dashboard.api.paging import (
    Cursor,
    Limit,
    Moment,
    Number,
    read_cursor,
    write_cursor,
)
from swarm_web.dashboard.api.reading import read
from swarm_web.dashboard.api.schemas.rollouts import RolloutsOut
from swarm_web.relay import selectors
from swarm_web.relay.selectors import Outcome, RolloutFilters, search_rollouts

router = Router(tags=["rollouts"])

Name = Annotated[str, Field(max_length=64, pattern=r"^[A-Za-z0-9_\-]*$")]
Author = Annotated[Name, Field(description="Only those that this node generated.")]
Learner = Annotated[Name, Field(description="Only those that this node trained on.")]
Dataset = Annotated[Name, Field(description="Only those of this dataset.")]
Verdict = Annotated[
    Literal["", "right", "wrong"],
    Field(description="Only those with at least one right completion, or with none."),
]


@read(router, "/rollouts", RolloutsOut)
def list_rollouts(
    request: HttpRequest,
    author: Author = "",
    learner: Learner = "",
    dataset: Dataset = "",
    outcome: Verdict = "",
    cursor: Cursor = "",
    limit: Limit = 100,
) -> dict[str, Any]:
    """List the archive's rollouts with verdicts of the site's own verifier, newest first."""
    filters = RolloutFilters(
        author=author, learner=learner, dataset=dataset, outcome=Outcome(outcome)
    )
    place = read_cursor(cursor, tuple[Moment, Number])
    after = selectors.Cursor(*place) if place else None
    page = search_rollouts(filters, limit=limit, after=after)
    return {
        "items": [describe_rollout(rollout) for rollout in page.rollouts],
        "next": write_cursor(page.next) if page.next else None,
    }
