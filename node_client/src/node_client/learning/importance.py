"""What each row's ratio is divided by, and how rows of other policies are corrected.

Of an external completion the sender may have told each token's log-prob, the whole completion's, or
nothing. A ratio to a sender's value is bounded, because nobody can check it.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from node_client.learning.losses import Correction
from node_client.learning.rows import Row
from node_client.settings.train_config import TrainConfig


def denominators(
    rows: Sequence[Row], *, before: Tensor, config: TrainConfig
) -> tuple[Tensor, Correction | None]:
    """Return the log-probs (B, T) to divide by, and what else is done to the rows of others.

    `before` (B, T) are this node's own log-probs before the update, without gradient. They are what
    is divided by, except where importance is `sender` and a row came with its tokens' log-probs.
    """
    if not any(row.external for row in rows):
        return before, None
    old = before.clone()
    correction = Correction(
        cap=before.new_full((len(rows),), torch.inf),
        weight=before.new_ones(len(rows)),
        shaped=torch.zeros(len(rows), dtype=torch.bool, device=before.device),
    )
    for place, row in enumerate(rows):
        sender = row.sender if config.importance == "sender" else None
        if sender is None:
            correction.shaped[place] = row.external and config.external_shaping == "luffy"
        elif sender.tokens is not None:
            old[place, : len(sender.tokens)] = before.new_tensor(sender.tokens)
            correction.cap[place] = config.importance_cap
        else:
            own = before[place, : len(row.completion)]
            correction.weight[place] = sequence_weight(
                own.sum() - sender.total, length=len(row.completion), config=config
            )
    return old, correction


def sequence_weight(log_ratio: Tensor, *, length: int, config: TrainConfig) -> Tensor:
    """Return what a row's loss is multiplied by, of the log of its likelihood here to the sender's.

    It is importance sampling, truncated at the cap, or masked outside of 1 / cap to cap, as trl
    does against vLLM (`vllm_importance_sampling_mode`). With ratios by sequence it is a geometric
    mean over the row's `length` tokens, as they are (GSPO, arXiv 2507.18071, equation 7).
    """
    if config.importance_sampling_level == "sequence":
        log_ratio = log_ratio / length
    weight = log_ratio.exp()
    if config.sequence_importance == "truncate":
        return weight.clamp(max=config.importance_cap)
    outside = (weight > config.importance_cap) | (weight < 1 / config.importance_cap)
    return weight.masked_fill(outside, 0.0)
