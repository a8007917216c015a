"""In which precision a model computes."""

import torch

from node_client.settings.choices import Precision

# Below this, casting back and forth costs as much as the faster multiplication saves.
WORTH_CASTING = 50_000_000


def choose_autocast(
    precision: Precision, *, device: torch.device, parameters: int
) -> torch.dtype | None:
    """Return the type to multiply in, or None for the weights' own.

    `auto` is bfloat16 where the hardware multiplies in it and the model is large enough to gain.
    It depends on nothing that changes between two runs on one machine.
    """
    if precision == "auto":
        fast = parameters >= WORTH_CASTING and _has_fast_bf16(device)
        precision = "bf16" if fast else "fp32"
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())
