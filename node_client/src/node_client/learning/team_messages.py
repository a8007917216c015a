"""How the processes of a node work together: the leader sends messages, and all carry them out.

`learning.team` has the processes themselves.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.team import ALONE, LaunchedTeam, Team
from node_client.learning.timing import StepTimer
from node_client.learning.update.updater import Updater, UpdateReport
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class BeginTraining:
    """A message to the processes of a team: train with these settings.

    All processes start from the leader's weights and optimizer state.
    """

    config: TrainConfig


@dataclass(frozen=True)
class GenerateAnswers:
    """A message to the processes of a team: answer each question `completions` times.

    Each process answers a share of the questions, and seeds its sampling with `seed` plus its rank.
    """

    questions: Sequence[str]
    completions: int
    max_new_tokens: int
    temperature: float
    top_p: float
    system_prompt: str
    seed: int


@dataclass(frozen=True)
class UpdatePolicy:
    """A message to the processes of a team: update the policy on these groups."""

    groups: Sequence[TrainingGroup]


@dataclass(frozen=True)
class Dismiss:
    """A message to the processes of a team: stop, because the leader has stopped."""


class TeamLeader:
    """Generates answers and updates the policy with all processes of a node.

    The trainer uses it in the same way whether the node has one process (`ALONE`) or several.
    `generate` and `update` raise NodeError when another process has ended.
    """

    def __init__(self, policy: Policy, config: TrainConfig, *, team: Team = ALONE) -> None:
        self._policy = policy
        self._team = team
        self._updater = Updater(policy, config, team=team)
        self._is_aligned = False

    def generate(self, message: GenerateAnswers) -> list[list[Generated]]:
        """Return the answers to each question.

        Raises MemoryExhaustedError if not even one completion fits into memory.
        """
        self._align()
        with self._team.sending(message):
            return generate_together(message, policy=self._policy, team=self._team)

    def update(self, groups: Sequence[TrainingGroup], *, timer: StepTimer) -> UpdateReport:
        """Update the policy on the groups. Raises MemoryExhaustedError as `Updater.update` does."""
        self._align()
        with self._team.sending(UpdatePolicy(groups)):
            return self._updater.update(groups, timer=timer)

    def state(self) -> dict[str, Any]:
        """Return what `load_state` needs; the policy's weights are saved separately."""
        return self._updater.state()

    def load_state(self, state: Mapping[str, Any]) -> str | None:
        """Continue from a saved `state`.

        Return a notice for the owner if the optimizer starts without its saved state, else None.
        """
        self._is_aligned = False
        return self._updater.load_state(state)

    def _align(self) -> None:
        """Copy the leader's trainable weights and optimizer state to all processes.

        Only the first call, and the first call after each `load_state`, has an effect.
        """
        if not self._is_aligned:
            with self._team.sending(BeginTraining(self._updater.config)):
                self._team.align(self._policy, self._updater.optimizer, self._updater.scaler)
            self._is_aligned = True


def follow(team: LaunchedTeam, policy: Policy) -> None:
    """Carry out the leader's messages until it dismisses this process.

    Raises NodeError when another process has ended, and MemoryExhaustedError when memory runs out
    and smaller batches cannot help.
    """
    updater: Updater | None = None
    while not isinstance(message := team.receive(), Dismiss):
        match message:
            case BeginTraining(config):
                updater = Updater(policy, config, team=team)
                team.align(policy, updater.optimizer, updater.scaler)
            case GenerateAnswers():
                generate_together(message, policy=policy, team=team)
            case UpdatePolicy(groups):
                assert updater is not None
                updater.update(groups, timer=StepTimer(time.perf_counter))


def generate_together(
    message: GenerateAnswers, *, policy: Policy, team: Team
) -> list[list[Generated]]:
    """Generate this process's share, and return all processes' answers in the questions' order.

    If the memory of one process runs out, all processes lower their sampling budgets to the
    smallest of these budgets. If not even one completion fits into the memory of one process, all
    processes raise MemoryExhaustedError.
    """
    own: list[list[Generated]] = []
    with suppress(MemoryExhaustedError):  # the budget is then 0, which `check` finds below
        own = policy.generate(
            message.questions[team.rank :: team.size],
            completions=message.completions,
            max_new_tokens=message.max_new_tokens,
            temperature=message.temperature,
            top_p=message.top_p,
            generator=torch.Generator(policy.device).manual_seed(message.seed + team.rank),
            system_prompt=message.system_prompt,
        )
    policy.sampling_budget.lower(team.minimum(policy.sampling_budget.share))
    policy.sampling_budget.check()
    shares = team.gather(own)
    return [shares[i % team.size][i // team.size] for i in range(len(message.questions))]
