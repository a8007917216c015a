"""Where a model can compute on this machine."""

import torch

from node_client.errors import SettingsError


def choose_device(asked: str) -> torch.device:
    """Return the device of this name; `auto` is the fastest there is.

    Raises SettingsError for one that is not there.
    """
    if asked == "auto":
        return torch.device(_fastest())
    try:
        device = torch.device(asked)
    except RuntimeError:
        raise _missing(asked, "is the name of no device") from None
    if not _is_there(device):
        raise _missing(asked, "is not there")
    return device


def _fastest() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _is_there(device: torch.device) -> bool:
    if device.type == "cpu":
        return True
    if device.type == "mps":
        return torch.backends.mps.is_available()
    try:
        module = torch.get_device_module(device)
        return bool(module.is_available()) and (device.index or 0) < module.device_count()
    except (RuntimeError, AttributeError):  # a kind that torch knows by name only
        return False


def _missing(asked: str, what: str) -> SettingsError:
    found = ["cpu"]
    if torch.backends.mps.is_available():
        found.append("mps")
    found += [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return SettingsError(
        f"The device {asked} {what}; this machine has {', '.join(found)}.",
        fix="Leave out --device to use the fastest, or name one of these. A GPU that is missing "
        "wants its driver and a torch built for it: pytorch.org.",
    )
