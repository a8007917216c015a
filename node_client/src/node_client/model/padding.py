"""Rows of tokens of different lengths as one tensor, with masks and positions."""

from collections.abc import Sequence

import torch
from torch import Tensor

# Several prompts or completions, each as its tokens.
Rows = Sequence[Sequence[int]]


def pad_left(rows: Rows, *, pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as (B, longest), padded on the left, and a mask that is 1 on tokens."""
    width = max(map(len, rows))
    ids = [[pad] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def pad_right(rows: Rows, *, pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return rows as (B, longest), padded on the right, and a mask that is 1 on tokens."""
    width = max(map(len, rows))
    ids = [list(row) + [pad] * (width - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def positions_of(attention: Tensor) -> Tensor:
    """Return each token's position in its row, without counting places where `attention` is 0.

    `attention` and the result are (B, T). Places before the first token have position 0.
    """
    return (attention.cumsum(dim=1) - 1).clamp(min=0)
