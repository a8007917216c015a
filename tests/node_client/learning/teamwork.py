"""What a team is asked to do in tests, alone and together."""

import torch

from node_client.learning.crew import Answer, Update
from node_client.learning.optimizer import make_scaler
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.stopwatch import Stopwatch
from node_client.learning.team import Team
from node_client.learning.update import UpdateReport, update_policy
from node_client.model.policy import Policy
from node_client.settings.train_config import TrainConfig

CONFIG = TrainConfig(learning_rate=1e-2, num_iterations=2)
# Greedy, so that who answers makes no difference; five questions do not divide by two.
ORDER = Answer(
    questions=["1 + 1", "2 + 2", "3 + 3", "4 + 4", "5 + 5"],
    completions=2,
    max_new_tokens=4,
    temperature=0.0,
    top_p=1.0,
    system_prompt="",
    seed=3,
)


def _group(prompt: int) -> TrainingGroup:
    return TrainingGroup(
        prompt=[prompt, 40, 41],
        completions=[[50 + prompt, 51, 1], [52, 1], [53, 54]],
        rewards=[1.0, 0.0, 0.0],
        truncated=[False, False, True],
    )


# The last one leaves a second process without a row.
UPDATES = [
    Update([_group(10), _group(11), _group(12)], max_completion_length=4),
    Update([_group(13)], max_completion_length=4),
]


def update(
    order: Update,
    policy: Policy,
    optimizer: torch.optim.Optimizer,
    team: Team,
    *,
    config: TrainConfig,
) -> UpdateReport:
    """Update the policy as ordered."""
    return update_policy(
        order.groups,
        policy=policy,
        optimizer=optimizer,
        scaler=make_scaler(policy, config),
        config=config,
        max_completion_length=order.max_completion_length,
        watch=Stopwatch(lambda: 0.0),
        team=team,
    )
