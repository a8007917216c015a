"""The least time that a step's multiplications can take on this machine."""

from statistics import median

import torch

from bench.node.sizes import COMPLETIONS, Size
from node_client.learning.timing import clock_of

# Mean tokens of a prompt of the starter tasks, with the system prompt.
PROMPT_TOKENS = 50
_REPEATS = 7


def floor_seconds(size: Size, device: str) -> float:
    """Return how many seconds a step's matrix products alone take, at rates measured on `device`.

    Each prompt is processed once in sampling and once in the update. A backward pass counts as two
    forward passes.
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
    """Return the number of weights in the layers' matrices, without embedding and head."""
    head_width = size.hidden_size // size.heads
    attention = 2 * size.hidden_size * (size.hidden_size + size.key_value_heads * head_width)
    return size.layers * (attention + 3 * size.hidden_size * size.intermediate_size)


def _rate(size: Size, rows: int, device: str) -> float:
    """Measure a matrix product whose left factor has `rows` rows; return operations per second."""
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
