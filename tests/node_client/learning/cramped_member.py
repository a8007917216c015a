"""A team in which one process has less memory than it needs: what each ends with is written."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.team import LaunchedTeam
from node_client.learning.team_messages import follow
from node_client.model.policy import Policy
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.team_member import work

LACKS = ("update", "all updates", "answers", "step")
FULL = torch.OutOfMemoryError("CUDA out of memory")


def cramp(policy: Policy, *, tokens: int) -> None:
    """Let memory run out when more than so many tokens of completions are run at once."""
    run = policy.logprobs

    def fail_above(prompts: Any, completions: Any, **options: Any) -> Any:
        if sum(map(len, completions)) > tokens:
            raise FULL
        return run(prompts, completions, **options)

    policy.logprobs = fail_above  # type: ignore[method-assign]


def lose(*_: Any, **__: Any) -> Any:
    """Find no memory at all."""
    raise FULL


def outcome_of(carry_out: Callable[[], object]) -> str:
    """Return the error that ended the work, or nothing."""
    try:
        carry_out()
    except MemoryExhaustedError as problem:
        return problem.message
    return ""


def main(folder: Path) -> None:
    """Lead or follow; the follower lacks memory for one kind of work after the other."""
    torch.set_num_threads(1)
    team = LaunchedTeam()
    for lack in LACKS:
        torch.save(take_part(team, lack), folder / f"{lack}-{team.rank}.pt")


def take_part(team: LaunchedTeam, lack: str) -> dict[str, object]:
    """Work with a follower that lacks memory, and return what this process ends with."""
    policy = toy_policy()
    if team.rank == 1:
        restrict(policy, lack)
    told = outcome_of(lambda: work(policy, team) if team.rank == 0 else follow(team, policy))
    return {
        "told": told,
        "weights": [parameter.detach() for parameter in policy.trainable()],
        "shares": (policy.update_budget.share, policy.sampling_budget.share),
    }


def restrict(policy: Policy, lack: str) -> None:
    """Let a process lack memory for one kind of work; the optimizer's steps stay so."""
    match lack:
        case "update":
            cramp(policy, tokens=3)
        case "all updates":
            cramp(policy, tokens=0)
        case "answers":
            policy._answer = lose  # type: ignore[method-assign]
        case "step":
            torch.optim.AdamW.step = lose  # type: ignore[method-assign]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
