"""The work of a team in tests, alone and together."""

from node_client.learning.rollouts import TrainingGroup
from node_client.learning.team_messages import GenerateAnswers, UpdatePolicy
from node_client.settings.train_config import TrainConfig

CONFIG = TrainConfig(learning_rate=1e-2, num_iterations=2)
# Greedy, so that it does not matter which process answers; five questions do not divide by two.
REQUEST = GenerateAnswers(
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


# The last update has no row for a second process.
UPDATES = [
    UpdatePolicy([_group(10), _group(11), _group(12)]),
    UpdatePolicy([_group(13)]),
]
