"""Limits how many tokens go through the model at once, and lowers the limit if memory runs out."""

import gc
from collections.abc import Mapping
from typing import Any

import torch

from node_client.errors import MemoryExhaustedError

_MIN_SHARE = 1 / 8192
# Parts of the messages of out-of-memory errors: accelerators raise OutOfMemoryError, the CPU
# allocator a RuntimeError.
_MESSAGES = ("out of memory", "can't allocate memory", "not enough memory")


class MemoryBudget:
    """The share of the desired tokens that fits into memory at once; the share never grows.

    `work` says in messages what the tokens are for, such as "an update". A `share` of 0 means that
    even the smallest share did not fit. `ran_out` is true after an out-of-memory error, but not
    after an estimate that lowered the share; `times_lowered` counts how often out-of-memory errors
    lowered the share.
    """

    def __init__(self, work: str) -> None:
        self.work = work
        self.share = 1.0
        self.ran_out = False
        self.times_lowered = 0

    def fit(self, tokens: int) -> int:
        """Return how many of the desired `tokens` to run at once; the result is at least 1."""
        return max(1, int(tokens * self.share))

    def shrink(
        self, error: RuntimeError | MemoryError, *, tried: float = 1.0, least: float = _MIN_SHARE
    ) -> None:
        """Lower the share after an out-of-memory error; re-raise any other error.

        `tried` is the share that the failed attempt used. The new share is half of `tried` or half
        of the present share, whichever is smaller. Below `least` it becomes 0.
        """
        if not is_out_of_memory(error):
            raise error
        share = min(self.share, tried) / 2
        self.lower(share if share >= least else 0.0)

    def lower(self, share: float) -> None:
        """Lower the share to `share` after memory ran out in this or another process of the node.

        If the present share is not larger than `share`, nothing changes.
        """
        if share < self.share:
            self.share = share
            self.ran_out = True
            self.times_lowered += 1

    def state(self) -> dict[str, Any]:
        """Return what `resume` needs, as plain values."""
        return {"share": self.share, "ran_out": self.ran_out}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restore a saved `state`, unless its share is 0 or larger than the present one."""
        if 0 < state["share"] <= self.share:
            self.share = state["share"]
            self.ran_out = self.ran_out or state["ran_out"]

    def check(self) -> None:
        """Raise MemoryExhaustedError if the share is 0."""
        if not self.share:
            raise MemoryExhaustedError(
                f"Memory runs out in {self.work}, however little goes through the model at once.",
                fix="Ask for shorter completions (max_completion_length) or fewer "
                "(num_generations), or start over (--fresh) with adapters instead of all weights "
                "(lora_r = 16) or with a smaller model.",
            )


def is_out_of_memory(error: RuntimeError | MemoryError) -> bool:
    """Return whether an error means that memory ran out."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(message in str(error) for message in _MESSAGES)


def release_memory(device: torch.device) -> None:
    """Free what a failed attempt left on a device.

    Call it after the `except` block: inside, the error keeps the attempt's tensors alive.
    """
    gc.collect()
    if device.type != "cpu":
        torch.accelerator.empty_cache()
