"""The least time that a step's multiplications can take on this machine."""

from statistics import median

import torch

from bench.node_sizes import COMPLETIONS, Size
from node_client.learning.timing import clock_of

# Mean tokens of a prompt of the starter tasks, with the system prompt.
PROMPT_TOKENS = 50
_REPEATS = 7


def floor_seconds(size: Size, device: str) -> float:
    """Return the seconds of all matrix products at the rates measured here, and of nothing else.

    Every prompt is run once: in sampling and in the update, whose backward pass counts twice.
    """
    rows = size.prompts * COMPLETIONS
    drawn = rows * size.completion_tokens
    tokens = size.prompts * PROMPT_TOKENS + drawn
    weights = _weights(size)
    head = size.vocabulary * size.hidden_size
    sampling = 2 * (weights * tokens + head * drawn)
    training = 3 * sampling
    return sampling / _rate(size, rows, device) + training / _rate(size, tokens, device)


def _weights(size: Size) -> int:
    """Return the parameters that every token is multiplied with, the head aside."""
    head_width = size.hidden_size // size.heads
    attention = 2 * size.hidden_size * (size.hidden_size + size.key_value_heads * head_width)
    return size.layers * (attention + 3 * size.hidden_size * size.intermediate_size)


def _rate(size: Size, rows: int, device: str) -> float:
    """Return the floating-point operations a second of a product with so many rows."""
    dtype = torch.bfloat16 if size.precision == "bf16" else torch.float32
    left = torch.randn(rows, size.hidden_size, dtype=dtype, device=device)
    right = torch.randn(size.intermediate_size, size.hidden_size, dtype=dtype, device=device)
    clock, seconds = clock_of(left.device), []
    for _ in range(_REPEATS):
        start = clock()
        for _ in range(20):
            torch.nn.functional.linear(left, right)
        seconds.append((clock() - start) / 20)
    return 2 * rows * size.hidden_size * size.intermediate_size / median(seconds)
