"""A team in which one process lacks memory; each process writes its final state."""

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
    """Let memory run out when more than `tokens` tokens of completions are run at once."""
    run = policy.logprobs

    def fail_above(prompts: Any, completions: Any, **options: Any) -> Any:
        if sum(map(len, completions)) > tokens:
            raise FULL
        return run(prompts, completions, **options)

    policy.logprobs = fail_above  # type: ignore[method-assign]


def run_out(*_: Any, **__: Any) -> Any:
    """Run out of memory immediately."""
    raise FULL


def outcome_of(carry_out: Callable[[], object]) -> str:
    """Return the error that ended the work, or an empty string."""
    try:
        carry_out()
    except MemoryExhaustedError as problem:
        return problem.message
    return ""


def main(folder: Path) -> None:
    """Lead or follow; the follower lacks memory for one kind of work after another."""
    torch.set_num_threads(1)
    team = LaunchedTeam()
    for lack in LACKS:
        torch.save(take_part(team, lack), folder / f"{lack}-{team.rank}.pt")


def take_part(team: LaunchedTeam, lack: str) -> dict[str, object]:
    """Work with a follower that lacks memory, and return the final state of this process."""
    policy = toy_policy()
    if team.rank == 1:
        restrict(policy, lack)
    failure = outcome_of(lambda: work(policy, team) if team.rank == 0 else follow(team, policy))
    return {
        "failure": failure,
        "weights": [parameter.detach() for parameter in policy.trainable()],
        "shares": (policy.update_budget.share, policy.sampling_budget.share),
    }


def restrict(policy: Policy, lack: str) -> None:
    """Let a process lack memory for one kind of work; the patched optimizer is not restored."""
    match lack:
        case "update":
            cramp(policy, tokens=3)
        case "all updates":
            cramp(policy, tokens=0)
        case "answers":
            policy._answer = run_out  # type: ignore[method-assign]
        case "step":
            torch.optim.AdamW.step = run_out  # type: ignore[method-assign]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
