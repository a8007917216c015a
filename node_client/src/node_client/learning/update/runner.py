"""Divides an update among the processes of a node, and decides on retries when memory runs out."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from node_client.errors import MemoryExhaustedError
from node_client.learning.team import Team
from node_client.learning.update.rows import TrainingRow
from node_client.model.policy import Policy


class UpdateRunner:
    """Divides an update among processes, which must all call the same methods in the same order."""

    def __init__(self, policy: Policy, optimizer: torch.optim.Optimizer, *, team: Team) -> None:
        self._optimizer = optimizer
        self._team = team
        self._budget = policy.update_budget
        self._share_before = self._budget.share

    def own_rows(self, rows: Sequence[TrainingRow]) -> list[TrainingRow]:
        """Return the rows of this process.

        Prompts are assigned to the processes in turn; all rows of a prompt go to the same one.
        """
        prompts = [tuple(row.prompt) for row in rows]
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(prompts))}
        return [
            row
            for row, prompt in zip(rows, prompts, strict=True)
            if places[prompt] % self._team.size == self._team.rank
        ]

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """If memory runs out in the block, suppress the error and lower the memory budget.

        Call `needs_retry` after the block. Other errors propagate.
        """
        self._share_before = self._budget.share
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            self._budget.shrink(error)

    def needs_retry(self) -> bool:
        """Return whether memory ran out during `attempt` in any process; if so, drop the gradients.

        All processes continue with the smallest of their memory budgets. Raises
        MemoryExhaustedError if this budget is 0.
        """
        self._budget.lower(self._team.minimum(self._budget.share))
        self._budget.check()
        if self._budget.share == self._share_before:
            return False
        self._optimizer.zero_grad(set_to_none=True)
        return True

    def check_copies(self) -> None:
        """Raise MemoryExhaustedError if there are several processes.

        Call it after an optimizer step that ran out of memory: some processes may have made their
        step and others not, so their copies of the policy may differ.
        """
        if self._team.size > 1:
            raise MemoryExhaustedError(
                "Memory ran out in the optimizer of one of this node's processes, and the others "
                "may have made their step.",
                fix="Resume with the optimizer adamw_8bit, or start over (--fresh) with adapters "
                "instead of all weights (lora_r = 16) or with a smaller model.",
            )
