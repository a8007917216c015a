"""Measure time and memory of a training step on a GPU, alone and while taking turns with trl."""

from pathlib import Path
from statistics import fmean, median

import torch

from bench.node.compare import PARTS, compare
from bench.node.model import build_model
from bench.node.ours import bench_config, make_trainer, make_turn
from bench.node.sizes import Size
from bench.node.work import LenientVerifier
from node_client.model.policy import Policy

# Other processes' use of the CPU hardly slows a GPU, so all turns count.
_MAX_FOREIGN_SHARE = 1.0
_UPDATE = ("forward", "backward", "optimizer")


def make_model(size: Size, folder: Path) -> dict[str, float]:
    """Write a model with random weights to `folder`, for later sections; return no figures."""
    build_model(size, folder)
    return {}


def measure_pace(size: Size, model: Path, device: str) -> dict[str, float]:
    """Return the time, the tokens per second, the peak memory and the memory budgets of our step.

    No other trainer runs meanwhile. A memory budget is the share of the work that fits into memory
    at once: 1 if all of it does.
    """
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with LenientVerifier() as verifier:
        policy = Policy.load(str(model), device=device)
        trainer = make_trainer(size, policy=policy, verifier=verifier, config=bench_config(size))
        for _ in range(size.warm_up_turns):
            make_turn(trainer, size)
        turns = [make_turn(trainer, size) for _ in range(size.turns)]
    tokens = fmean(turn.tokens for turn in turns)
    parts = {part: fmean(turn.parts.get(part, 0.0) for turn in turns) for part in PARTS}
    return {
        "step_s": median(turn.seconds for turn in turns),
        **{f"{part}_s": seconds for part, seconds in parts.items()},
        "generated_tokens_per_s": tokens / parts["generate"],
        "trained_tokens_per_s": tokens / sum(parts[part] for part in _UPDATE),
        "memory_gb": turns[-1].peak_bytes / 1e9,
        "update_budget": policy.update_budget.share,
        "sampling_budget": policy.sampling_budget.share,
    }


def compare_with_trl(size: Size, model: Path, device: str) -> dict[str, float]:
    """Let our trainer and trl's trainer take turns; return the step time and peak memory of each.

    Raises IsolatedProcessError, with the trainer's name in its message, if a trainer fails.
    """
    found = compare(size, model=model, device=device, max_foreign_share=_MAX_FOREIGN_SHARE)
    return {
        "step_ratio_vs_trl": found.step_ratio,
        "memory_ratio_vs_trl": found.memory_ratio,
        "step_by_turns_s": found.ours_s,
        "trl_step_s": found.trl_s,
        "memory_by_turns_gb": found.ours_bytes / 1e9,
        "trl_memory_gb": found.trl_bytes / 1e9,
        "floor_s": found.floor_s,
    }
