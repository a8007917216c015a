"""A leader that fails while a message is processed, and a follower that waits for its part."""

import torch

from node_client.learning.team import LaunchedTeam
from node_client.learning.team_messages import BeginTraining, follow
from node_client.runtime.run import leading
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.teamwork import CONFIG, REQUEST


def main() -> None:
    """Lead and fail, or follow."""
    torch.set_num_threads(1)
    team = LaunchedTeam()
    if team.rank > 0:
        follow(team, toy_policy())
    with leading(team), team.sending(BeginTraining(CONFIG)):
        raise RuntimeError(f"failed before {type(REQUEST).__name__}")


if __name__ == "__main__":
    main()
