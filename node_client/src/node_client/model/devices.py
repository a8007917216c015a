"""The device that a model computes on, and the precision."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from node_client.errors import SettingsError
from node_client.settings.choices import Precision

# Below this, casting back and forth costs as much as the faster multiplication saves.
MIN_CAST_PARAMETERS = 50_000_000


def choose_device(name: str) -> torch.device:
    """Return the device of this name; `auto` is the fastest available.

    Raises SettingsError for a device that is not available.
    """
    if name == "auto":
        return torch.device(_fastest())
    device = device_named(name)
    if not _is_available(device):
        raise _unavailable(name, "is not available")
    return device


def device_named(name: str) -> torch.device:
    """Return the device of this name, available or not.

    Raises SettingsError if torch knows no such device.
    """
    try:
        return torch.device(name)
    except RuntimeError:
        raise _unavailable(name, "does not exist") from None


def choose_autocast(
    precision: Precision, *, device: torch.device, parameters: int
) -> torch.dtype | None:
    """Return the type for autocast to multiply in, or None for the weights' own type.

    `auto` is bfloat16 if the hardware multiplies in bfloat16 and the model is so large that this
    saves time. The result is the same in each run on a machine.
    """
    if precision == "auto":
        fast = parameters >= MIN_CAST_PARAMETERS and _has_fast_bf16(device)
        precision = "bf16" if fast else "fp32"
    return {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


@contextmanager
def linear_weights_as(dtype: torch.dtype, model: nn.Module) -> Iterator[None]:
    """Replace the float32 weights of a model's linear layers by copies of type `dtype`.

    After the block the layers have their own weights again. Under autocast the results are the
    same, but autocast casts weights for each token that is sampled: it keeps no cast of a frozen
    weight, and in inference mode none at all. Weights that are shared with an embedding are
    replaced only in the linear layer.
    """
    layers = [
        (layer, layer.weight)
        for layer in model.modules()
        if isinstance(layer, nn.Linear) and layer.weight.dtype == torch.float32
    ]
    try:
        for layer, weight in layers:
            layer.weight = nn.Parameter(weight.to(dtype), requires_grad=False)
        yield
    finally:
        for layer, weight in layers:
            layer.weight = weight


def _fastest() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _is_available(device: torch.device) -> bool:
    if device.type == "cpu":
        return True
    if device.type == "mps":
        return torch.backends.mps.is_available()
    try:
        module = torch.get_device_module(device)
        return bool(module.is_available()) and (device.index or 0) < module.device_count()
    except (RuntimeError, AttributeError):  # a kind that torch knows by name only
        return False


def _unavailable(name: str, what: str) -> SettingsError:
    found = ["cpu"]
    if torch.backends.mps.is_available():
        found.append("mps")
    found += [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return SettingsError(
        f"The device {name} {what}; this machine has {', '.join(found)}.",
        fix="Leave out --device to use the fastest, or name one of these. A GPU that is missing "
        "needs its driver and a torch built for it: pytorch.org.",
    )


def _has_fast_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and bool(torch.cpu._is_avx512_bf16_supported())
