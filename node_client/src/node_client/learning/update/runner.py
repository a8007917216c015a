"""Runs an update in all processes of a node, with smaller micro-batches after memory ran out.

So the update itself (`update.updater`) reads as if there were one process with enough memory.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.team import Team
from node_client.learning.update.rows import TrainingRow
from node_client.model.memory.budget import release_memory
from node_client.model.policy import Policy

ResultT = TypeVar("ResultT")


class UpdateRunner:
    """Runs the parts of an update. All processes must call the same methods in the same order."""

    def __init__(self, policy: Policy, optimizer: torch.optim.Optimizer, *, team: Team) -> None:
        self._policy = policy
        self._optimizer = optimizer
        self._team = team

    @property
    def is_shared(self) -> bool:
        """Whether several processes share the rows."""
        return self._team.size > 1

    def run(
        self,
        rows: Sequence[TrainingRow],
        make_steps: Callable[[Sequence[TrainingRow]], ResultT | None],
    ) -> ResultT:
        """Return what `make_steps` returns for this process's rows, repeated while it is None."""
        mine = self._share(rows)
        while (made := make_steps(mine)) is None:
            release_memory(self._policy.device)
        return made

    def attempt(self, work: Callable[[], ResultT]) -> ResultT | None:
        """Return the result of `work`, or None in all processes if memory ran out in one of them.

        All continue with the smallest memory budget. Raises MemoryExhaustedError if one has nothing
        left.
        """
        budget, before = self._policy.room, self._policy.room.share
        result = None
        try:
            result = work()
        except (RuntimeError, MemoryError) as error:
            budget.shrink(error)
        budget.lower(self._team.least(budget.share))
        budget.check()
        if budget.share == before:
            return result
        self._optimizer.zero_grad(set_to_none=True)
        return None

    def step(self, descend: Callable[[], ResultT]) -> ResultT | None:
        """Add the gradients of all processes up, then attempt an optimizer step.

        Raises MemoryExhaustedError if memory ran out in one process of several: the others may have
        made their step, so the copies of the policy may differ.
        """
        self._team.add_up_gradients(self._policy.trainable())
        result = self.attempt(descend)
        if result is None and self.is_shared:
            raise MemoryExhaustedError(
                "Memory ran out in the optimizer of one of this node's processes, and the others "
                "may have made their step.",
                fix="Resume with the optimizer adamw_8bit, or begin anew (--fresh) with adapters "
                "instead of all weights (lora_r = 16) or with a smaller model.",
            )
        return result

    def add_up(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes."""
        return self._team.add_up(values)

    def _share(self, rows: Sequence[TrainingRow]) -> list[TrainingRow]:
        """Return this process's rows: whole prompts, dealt out in turn."""
        prompts = [tuple(row.prompt) for row in rows]
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        return [
            row
            for row, prompt in zip(rows, prompts, strict=True)
            if places[prompt] % self._team.size == self._team.rank
        ]
