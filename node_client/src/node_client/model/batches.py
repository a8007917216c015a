"""Sampling in batches that fit into memory: smaller ones when it runs out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from node_client.model.room import Room, release_memory
from node_client.model.sampling import Sampling

# How many tokens, prompts included, are generated at once: bounds the key-value cache's memory.
GENERATION_TOKENS = 32_768

AnswerT = TypeVar("AnswerT")
Prompt = Sequence[int]


@dataclass(frozen=True)
class Batch:
    """Prompts that are answered together, each so many times."""

    prompts: Sequence[Prompt]
    copies: int

    def tokens(self, *, max_new_tokens: int) -> int:
        """Return how many tokens this comes to at most."""
        longest = max(len(prompt) for prompt in self.prompts)
        return len(self.prompts) * self.copies * (longest + max_new_tokens)


def sample_in_batches(
    prompts: Sequence[Prompt],
    *,
    sample: Callable[[Sequence[Prompt], Sampling], list[list[AnswerT]]],
    sampling: Sampling,
    room: Room,
    device: torch.device,
) -> list[list[AnswerT]]:
    """Return each prompt's answers, in order, as `sample` gives them for a batch.

    When memory runs out, batches are halved, if need be down to one completion at once. Raises
    MemoryExhaustedError when that does not fit either.
    """
    answers: list[list[AnswerT]] = [[] for _ in prompts]
    place = 0
    while place < len(prompts):
        batch = next_batch(
            prompts[place:],
            missing=sampling.completions - len(answers[place]),
            sampling=sampling,
            room=room,
        )
        try:
            given = sample(batch.prompts, replace(sampling, completions=batch.copies))
        except (RuntimeError, MemoryError) as problem:
            tokens = batch.tokens(max_new_tokens=sampling.max_new_tokens)
            room.shrink(problem, tried=tokens / GENERATION_TOKENS)
            if len(batch.prompts) == batch.copies == 1:
                room.lower(0.0)
        else:
            for known, new in zip(answers[place:], given, strict=False):
                known += new
            while place < len(prompts) and len(answers[place]) == sampling.completions:
                place += 1
            continue
        room.check()
        release_memory(device)
    return answers


def next_batch(prompts: Sequence[Prompt], *, missing: int, sampling: Sampling, room: Room) -> Batch:
    """Return the first prompts, as many as there is room for, with at least one completion.

    `missing` says how many completions the first one lacks. The completions of a prompt are
    sampled together unless memory ran out: they share its prefill.
    """
    limit = room.fit(GENERATION_TOKENS)
    fitting = max(1, limit // (len(prompts[0]) + sampling.max_new_tokens))
    if (room.ran_out and fitting < missing) or missing < sampling.completions:
        return Batch(prompts[:1], copies=min(fitting, missing))
    count, longest = 1, len(prompts[0])
    for prompt in prompts[1:]:
        longest = max(longest, len(prompt))
        if (count + 1) * sampling.completions * (longest + sampling.max_new_tokens) > limit:
            break
        count += 1
    return Batch(prompts[:count], copies=sampling.completions)
