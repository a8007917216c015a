"""How much goes through a model at once, and less of it when memory runs out."""

import gc

import torch

_LEAST_SHARE = 1 / 1024
# What allocators say: accelerators' in an OutOfMemoryError, the processor's in a RuntimeError.
_COMPLAINTS = ("out of memory", "can't allocate memory", "not enough memory")


class Room:
    """The share of the configured tokens that fits into memory; it only ever gets smaller."""

    def __init__(self) -> None:
        self.share = 1.0

    def fit(self, tokens: int) -> int:
        """Return how many of so many tokens to run at once."""
        return max(1, int(tokens * self.share))

    def shrink(self, problem: RuntimeError | MemoryError) -> None:
        """Halve the share, after an error; raises it again if memory is not what was missing."""
        if not is_out_of_memory(problem) or self.share <= _LEAST_SHARE:
            raise problem
        self.share /= 2

    def describe(self, tokens: int) -> str:
        """Say what running out of memory led to, for the node's owner."""
        return (
            f"Memory ran out, so updates now run {self.fit(tokens)} tokens at once instead of "
            f"{tokens}. To begin so next time, set micro_batch_tokens to that."
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
