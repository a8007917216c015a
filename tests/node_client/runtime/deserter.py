"""A leader that fails in the middle of an order, and a follower that waits for its part."""

import torch

from node_client.learning.crew import Begin, follow
from node_client.learning.team import LaunchedTeam
from node_client.runtime.run import leading
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.teamwork import CONFIG, ORDER


def main() -> None:
    """Lead and fail, or follow."""
    torch.set_num_threads(1)
    team = LaunchedTeam()
    if team.rank > 0:
        follow(team, toy_policy())
    with leading(team), team.carrying_out(Begin(CONFIG)):
        raise RuntimeError(f"failed before {type(ORDER).__name__}")


if __name__ == "__main__":
    main()
