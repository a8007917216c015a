"""One process of a node's team, started by `accelerate launch`; the leader writes the results."""

import sys
from pathlib import Path

import torch

from node_client.learning.team import LaunchedTeam, Team
from node_client.learning.team_messages import Dismiss, TeamLeader, follow
from node_client.learning.timing import StepTimer
from node_client.learning.update.updater import Updater
from node_client.model.policy import Policy
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.teamwork import CONFIG, REQUEST, UPDATES


def work(policy: Policy, team: Team) -> dict[str, object]:
    """Answer and update like a resumed leader; return answers, weights and reports."""
    timer = StepTimer(lambda: 0.0)
    earlier = Updater(policy, CONFIG)
    earlier.update(UPDATES[0].groups, timer=timer)
    leader = TeamLeader(policy, CONFIG, team=team)
    leader.load_state(earlier.state())
    answers = leader.generate(REQUEST)
    reports = [leader.update(each.groups, timer=timer) for each in UPDATES]
    team.send(Dismiss())
    return {
        "answers": [[given.text for given in group] for group in answers],
        "weights": [parameter.detach() for parameter in policy.trainable()],
        "reports": [(report.loss, report.grad_norm) for report in reports],
    }


def main(folder: Path) -> None:
    """Lead or follow; a follower starts with other weights, and writes its final ones."""
    torch.set_num_threads(1)
    team = LaunchedTeam()
    policy = toy_policy(seed=team.rank)
    if team.rank == 0:
        torch.save(work(policy, team), folder / "leader.pt")
    else:
        follow(team, policy)
        weights = [parameter.detach() for parameter in policy.trainable()]
        torch.save(weights, folder / f"follower-{team.rank}.pt")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
