"""How much goes through a model at once, and less of it when memory runs out."""

import gc
from collections.abc import Mapping
from typing import Any

import torch

from node_client.errors import MemoryExhaustedError

_LEAST_SHARE = 1 / 8192
# What allocators say: accelerators' in an OutOfMemoryError, the processor's in a RuntimeError.
_COMPLAINTS = ("out of memory", "can't allocate memory", "not enough memory")


class Room:
    """The share of the tokens wanted at once that fits into memory; it only ever gets smaller.

    `work` says what is done with them, such as "an update". A share of 0 means that nothing fits;
    `ran_out` tells that a share was too large, and not only expected to be.
    """

    def __init__(self, work: str) -> None:
        self.work = work
        self.share = 1.0
        self.ran_out = False

    def fit(self, tokens: int) -> int:
        """Return how many of so many tokens to run at once."""
        return max(1, int(tokens * self.share))

    def shrink(self, problem: RuntimeError | MemoryError, *, tried: float = 1.0) -> None:
        """Halve the share, or the smaller one that was `tried`, after an error.

        Raises the error again if memory is not what was missing.
        """
        if not is_out_of_memory(problem):
            raise problem
        share = min(self.share, tried) / 2
        self.lower(share if share >= _LEAST_SHARE else 0.0)

    def lower(self, share: float) -> bool:
        """Go on with this share if it is smaller; return whether it is."""
        if share >= self.share:
            return False
        self.share = share
        self.ran_out = True
        return True

    def state(self) -> dict[str, Any]:
        """Return all that `resume` needs, as plain values."""
        return {"share": self.share, "ran_out": self.ran_out}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Begin with no more than was known to fit where `state` was taken."""
        if 0 < state["share"] <= self.share:
            self.share = state["share"]
            self.ran_out = self.ran_out or state["ran_out"]

    def check(self) -> None:
        """Raise MemoryExhaustedError when nothing fits."""
        if not self.share:
            raise MemoryExhaustedError(
                f"Memory runs out in {self.work}, however little goes through the model at once.",
                fix="Ask for shorter completions (max_completion_length) or fewer "
                "(num_generations), or begin anew (--fresh) with adapters instead of all weights "
                "(lora_r = 16) or with a smaller model.",
            )


def is_out_of_memory(problem: RuntimeError | MemoryError) -> bool:
    """Tell whether an error means that memory ran out."""
    if isinstance(problem, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(complaint in str(problem) for complaint in _COMPLAINTS)


def release_memory(device: torch.device) -> None:
    """Give back what an attempt left; call it outside the `except`, which still holds all of it."""
    gc.collect()
    if device.type != "cpu":
        torch.accelerator.empty_cache()


def describe_update_room(room: Room, *, tokens: int) -> str:
    """Say what running out of memory in updates led to, for the node's owner."""
    return (
        f"Memory ran out, so updates now run {room.fit(tokens)} tokens at once instead of "
        f"{tokens}, also when this run is resumed. If there is more memory by then, change "
        "micro_batch_tokens: what fits is then estimated anew."
    )


def describe_sampling_room(room: Room, *, tokens: int) -> str:
    """Say what running out of memory while completions were sampled led to."""
    return (
        f"Memory ran out while completions were sampled, so {room.fit(tokens)} tokens are sampled "
        f"at once instead of {tokens}, which takes longer. Shorter completions "
        "(max_completion_length), fewer (num_generations) or a smaller model leave more room."
    )
