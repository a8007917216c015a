"""Rows of tokens of unequal length as one tensor, with masks and positions."""

from collections.abc import Sequence

import torch
from torch import Tensor


def pad_left(
    rows: Sequence[Sequence[int]], *, pad: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return rows as (B, longest) with padding in front, and a mask that is 1 on tokens."""
    width = max(map(len, rows))
    ids = [[pad] * (width - len(row)) + list(row) for row in rows]
    mask = [[0] * (width - len(row)) + [1] * len(row) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def pad_right(
    rows: Sequence[Sequence[int]], *, pad: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return rows as (B, longest) with padding behind, and a mask that is 1 on tokens."""
    width = max(map(len, rows))
    ids = [list(row) + [pad] * (width - len(row)) for row in rows]
    mask = [[1] * len(row) + [0] * (width - len(row)) for row in rows]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def positions_of(attention: Tensor) -> Tensor:
    """Return each token's position in its row, counted without padding (B, T)."""
    return (attention.cumsum(dim=1) - 1).clamp(min=0)
