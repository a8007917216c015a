"""What the processes of a node do together: the leader announces an order, and all carry it out."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.optimizer import begin_training, make_scaler
from node_client.learning.rollouts import TrainingGroup
from node_client.learning.stopwatch import Stopwatch
from node_client.learning.team import LaunchedTeam, Team
from node_client.learning.update import update_policy
from node_client.model.policy import Policy
from node_client.model.sampling import Generated
from node_client.settings.train_config import TrainConfig


@dataclass(frozen=True)
class Begin:
    """Train by these settings, from the leader's weights and optimizer state on."""

    config: TrainConfig


@dataclass(frozen=True)
class Answer:
    """Answer each question `completions` times; each process samples with a seed of its own."""

    questions: Sequence[str]
    completions: int
    max_new_tokens: int
    temperature: float
    top_p: float
    system_prompt: str
    seed: int


@dataclass(frozen=True)
class Update:
    """Update the policy on these groups."""

    groups: Sequence[TrainingGroup]
    max_completion_length: int


@dataclass(frozen=True)
class Dismiss:
    """Stop: the leader has."""


def answer(order: Answer, *, policy: Policy, team: Team) -> list[list[Generated]]:
    """Generate this process's share, and return all processes' answers in the questions' order.

    All go on with the room of the one that has least. Raises MemoryExhaustedError in every process
    when one of them could not answer at all.
    """
    own: list[list[Generated]] = []
    with suppress(MemoryExhaustedError):  # which leaves no room: all are told below
        own = policy.generate(
            team.share(order.questions),
            completions=order.completions,
            max_new_tokens=order.max_new_tokens,
            temperature=order.temperature,
            top_p=order.top_p,
            generator=torch.Generator(policy.device).manual_seed(order.seed + team.rank),
            system_prompt=order.system_prompt,
        )
    policy.sampling_room.lower(team.least(policy.sampling_room.share))
    policy.sampling_room.check()
    shares = team.gather(own)
    return [shares[i % team.size][i // team.size] for i in range(len(order.questions))]


def follow(team: LaunchedTeam, policy: Policy) -> None:
    """Carry out the leader's orders until it dismisses this process. Raises NodeError."""
    while not isinstance(order := team.await_order(), Dismiss):
        match order:
            case Begin(config):
                optimizer = begin_training(policy, config)
                scaler = make_scaler(policy, config)
                team.align(policy, optimizer, scaler)
            case Answer():
                answer(order, policy=policy, team=team)
            case Update(groups, max_completion_length):
                update_policy(
                    groups,
                    policy=policy,
                    optimizer=optimizer,
                    scaler=scaler,
                    config=config,
                    max_completion_length=max_completion_length,
                    watch=Stopwatch(time.perf_counter),
                    team=team,
                )
