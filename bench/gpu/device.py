"""Describe the measured GPU, and check that its float32 products are really in float32."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch

# An upper estimate of the memory that a CUDA context takes by itself.
_CONTEXT_BYTES = 1_000_000_000
_PRODUCT = 1024


@dataclass(frozen=True)
class Device:
    """A device, inspected before the measurements.

    `held_bytes` estimates how much of the device's memory other processes hold. `product_error` is
    the largest error of an element of a float32 matrix product, divided by the standard deviation
    of the product's elements: about 1e-6, or 1e-3 if TF32 is on.
    """

    description: str
    has_bf16: bool
    held_bytes: int
    product_error: float


def is_gpu_there() -> bool:
    """Return whether torch can use an NVIDIA GPU, or an AMD GPU with ROCm."""
    return torch.cuda.is_available()


def why_no_gpu() -> str:
    """Return a text for the user: why torch finds no GPU, and what to do."""
    if torch.version.cuda is None and torch.version.hip is None:
        return (
            f"This PyTorch, {torch.__version__}, is built for CPUs only. On a machine with a GPU, "
            "`make clean bench-gpu` installs another build; for GPUs that are not NVIDIA's, "
            "TORCH_INDEX_URL= names where it is (docs/operations.md)."
        )
    return (
        f"PyTorch {torch.__version__} finds none. Look whether `nvidia-smi` (ROCm: `rocm-smi`) "
        "lists one, whether its driver is new enough for this PyTorch, and whether "
        "CUDA_VISIBLE_DEVICES hides it."
    )


def inspect_device(device: str) -> Device:
    """Return the description of a torch device, with the error of a matrix product on it."""
    if device == "cpu":
        return Device("the CPU instead of a GPU", True, 0, _product_error(device))
    free, total = torch.cuda.mem_get_info()
    properties = torch.cuda.get_device_properties(0)
    runtime = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"ROCm {torch.version.hip}"
    return Device(
        description=f"{properties.name}, {total / 2**30:.0f} GB, {runtime}, {_libraries()}",
        has_bf16=torch.cuda.is_bf16_supported(including_emulation=False),
        held_bytes=max(0, total - free - _CONTEXT_BYTES),
        product_error=_product_error(device),
    )


def _product_error(device: str) -> float:
    generator = torch.Generator().manual_seed(0)
    left, right = torch.randn(2, _PRODUCT, _PRODUCT, generator=generator)
    expected = left.double() @ right.double()
    found = (left.to(device) @ right.to(device)).cpu()
    error: float = ((found - expected).abs().max() / expected.std()).item()
    return error


def _libraries() -> str:
    """Return the versions of the libraries that speed depends on, as text."""
    found = []
    for name in ("torch", "transformers", "trl"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)
