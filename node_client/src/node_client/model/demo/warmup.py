"""Supervised warm-up of a demo base: it learns to answer, but seldom in the required format.

Reinforcement learning needs a policy that is sometimes right. As in the text that a base model has
read, the answers are right (apart from deliberate slips in worked solutions), but only a few are
between answer tags. So the policy starts reinforcement learning with a low pass@1. Much of the gain
then comes from learning the format, the rest from learning the mathematics.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from node_client.model.policy import Policy


@dataclass(frozen=True)
class WarmUpExample:
    """A question, its answer, and the worked solution before the answer, empty if there is none."""

    question: str
    answer: str
    working: str = ""


@dataclass(frozen=True)
class WarmUpConfig:
    """The settings of a warm-up: its length, batches, learning rate and share of tagged answers."""

    steps: int
    batch_size: int = 96
    learning_rate: float = 3e-3
    tagged_share: float = 0.15
    """The share of answers between <answer> tags; only these are rewarded later."""


def warm_up(
    policy: Policy,
    examples: Sequence[WarmUpExample],
    *,
    config: WarmUpConfig,
    seed: int,
    on_step: Callable[[int, int], None],
) -> None:
    """Train the policy on the examples; `on_step` gets the numbers of finished and total steps."""
    parameters = policy.trainable()
    optimizer = torch.optim.AdamW(parameters, lr=config.learning_rate, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=config.learning_rate, total_steps=config.steps, pct_start=0.05
    )
    batches = _draw_batches(policy, examples, config=config, rng=random.Random(seed))
    for step in range(1, config.steps + 1):
        prompts, completions = next(batches)
        logprobs, mask = policy.logprobs(prompts, completions)
        loss = -(logprobs * mask).sum() / mask.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        on_step(step, config.steps)


def _draw_batches(
    policy: Policy,
    examples: Sequence[WarmUpExample],
    *,
    config: WarmUpConfig,
    rng: random.Random,
) -> Iterator[tuple[list[list[int]], list[list[int]]]]:
    """Yield batches of prompts and completions forever."""
    while True:
        batch = rng.choices(examples, k=config.batch_size)
        texts = [
            example.working + f"<answer>{example.answer}</answer>"
            if rng.random() < config.tagged_share
            else example.working + example.answer
            for example in batch
        ]
        yield (
            [policy.prompt_ids(example.question) for example in batch],
            [policy.completion_ids(text, "stop") or [] for text in texts],
        )
