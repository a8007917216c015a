"""One process of a node's team, started by `accelerate launch`: the leader writes what came out."""

import sys
from pathlib import Path

import torch

from node_client.learning.crew import Begin, Dismiss, Update, answer, follow
from node_client.learning.optimizer import begin_training, make_scaler
from node_client.learning.team import ALONE, LaunchedTeam, Team
from node_client.learning.update import UpdateReport
from node_client.model.policy import Policy
from tests.node_client.fakes import toy_policy
from tests.node_client.learning.teamwork import CONFIG, ORDER, UPDATES, update


def work(policy: Policy, team: Team) -> dict[str, object]:
    """Answer and update as a resumed leader does, and return answers, weights and reports."""
    optimizer = begin_training(policy, CONFIG)
    update(UPDATES[0], policy, optimizer, ALONE, config=CONFIG)
    team.announce(Begin(CONFIG))
    team.align(policy, optimizer, make_scaler(policy, CONFIG))
    team.announce(ORDER)
    answers = answer(ORDER, policy=policy, team=team)
    reports = [_announced(order, policy, optimizer, team) for order in UPDATES]
    team.announce(Dismiss())
    return {
        "answers": [[given.text for given in group] for group in answers],
        "weights": [parameter.detach() for parameter in policy.trainable()],
        "reports": [(report.loss, report.grad_norm) for report in reports],
    }


def _announced(
    order: Update, policy: Policy, optimizer: torch.optim.Optimizer, team: Team
) -> UpdateReport:
    team.announce(order)
    return update(order, policy, optimizer, team, config=CONFIG)


def main(folder: Path) -> None:
    """Lead or follow; a follower begins with other weights, and writes those that it ends with."""
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
