"""Which GPU is measured, what it can do, and whether it computes in float32 what it says."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import torch

# What a CUDA context takes by itself, generously.
_CONTEXT_BYTES = 1_000_000_000
_PRODUCT = 1024


@dataclass(frozen=True)
class Device:
    """A device as it was before anything ran on it.

    `held_bytes` is what other processes hold of its memory. `product_error` is the largest error of
    a product of float32 matrices, over the product's standard deviation: some 1e-6, or 1e-3 where
    TF32 is on.
    """

    description: str
    has_bf16: bool
    held_bytes: int
    product_error: float


def is_gpu_there() -> bool:
    """Tell whether torch can use an NVIDIA GPU, or one of AMD's by ROCm."""
    return torch.cuda.is_available()


def why_no_gpu() -> str:
    """Say what is missing, and what helps."""
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
    """Describe the device and multiply two matrices on it."""
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
    """Return the versions that speed depends on."""
    found = []
    for name in ("torch", "transformers", "trl"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)
