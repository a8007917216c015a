"""Downloads models from the Hugging Face Hub, or finds them in the cache of downloads."""

import errno
import logging
import shutil
from pathlib import Path

from huggingface_hub import HfApi, constants, get_token, snapshot_download
from huggingface_hub.errors import (  # type: ignore[attr-defined]  # HTTPError is httpx's
    GatedRepoError,
    HFValidationError,
    HTTPError,
    RepositoryNotFoundError,
)
from huggingface_hub.hf_api import ModelInfo
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    filter_repo_objects,
    validate_repo_id,
)

from node_client.errors import ModelUnavailableError
from node_client.model.loading.contents import MISTRAL_COPY, first_line, unusable
from node_client.model.loading.progress import OnProgress, counting_bar

LOOKUP_TIMEOUT_S = 10.0
# What transformers reads, without the copies in other formats that many repositories hold.
_WANTED = ["*.json", "*.txt", "*.model", "*.jinja"]
_SAFE, _OLD = "*.safetensors", "pytorch_model*.bin"
_UNWANTED = ["*/*", "*.gguf", MISTRAL_COPY]
# OSErrors of the disk; other OSErrors during a download come from the network.
_DISK_ERRORS = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
)

log = logging.getLogger(__name__)


def fetch_model(name: str, *, on_progress: OnProgress) -> Path:
    """Return the local folder of a model from the hub; files that the cache lacks are downloaded.

    If the hub cannot be reached, or if the files cannot be downloaded or stored, the model in the
    cache is used.
    Raises ModelUnavailableError if the cache then lacks the model, or if the hub has no such model
    or refuses it.
    """
    try:
        validate_repo_id(name)
    except HFValidationError:
        raise _not_found(name) from None
    # Before the download: an incomplete download hides the older model in the cache.
    cached = _find_cached_folder(name)
    if constants.HF_HUB_OFFLINE:
        return _use_cache(name, cached, "HF_HUB_OFFLINE keeps this client from the hub")
    try:
        info = HfApi().model_info(name, timeout=LOOKUP_TIMEOUT_S, files_metadata=True)
        return _download(name, info, on_progress=on_progress, is_cached=cached is not None)
    except GatedRepoError:
        raise unusable(
            name,
            "its authors ask for consent to their terms",
            fix=f"Accept them on {constants.ENDPOINT}/{name}, then run `hf auth login`.",
        ) from None
    except RepositoryNotFoundError:
        raise _not_found(name) from None
    except (HTTPError, OSError) as problem:
        if not isinstance(problem, OSError) or problem.errno not in _DISK_ERRORS:
            return _use_cache(name, cached, f"the hub does not answer ({first_line(problem)})")
        failure = f"its download cannot be stored in {constants.HF_HUB_CACHE} ({problem.strerror})"
        fix = "Free some space, or set HF_HOME to another folder that you can write to."
        return _use_cache(name, cached, failure, fix=fix)
    except RuntimeError as problem:  # hf_xet raises nothing more specific
        failure = f"its download from Xet, the hub's storage, failed ({first_line(problem)})"
        fix = "Try again later. If your network blocks Xet, set HF_HUB_DISABLE_XET=1."
        return _use_cache(name, cached, failure, fix=fix)


def _download(name: str, info: ModelInfo, *, on_progress: OnProgress, is_cached: bool) -> Path:
    sizes = {file.rfilename: file.size or 0 for file in info.siblings or []}
    safe = filter_repo_objects(sizes, allow_patterns=_SAFE, ignore_patterns=_UNWANTED)
    wanted = [*_WANTED, _SAFE if any(safe) else _OLD]
    if not is_cached:
        files = filter_repo_objects(sizes, allow_patterns=wanted, ignore_patterns=_UNWANTED)
        _check_disk(name, sum(sizes[file] for file in files))
    folder = snapshot_download(
        name,
        allow_patterns=wanted,
        ignore_patterns=_UNWANTED,
        tqdm_class=counting_bar(on_progress, work="Downloading", unit="bytes"),
    )
    return Path(folder)


def _use_cache(name: str, cached: Path | None, failure: str, *, fix: str = "") -> Path:
    """Return `cached`, a model's folder in the cache, and log why the hub is not used.

    Raises ModelUnavailableError if `cached` is None. `fix` is the remedy if the hub has the model;
    without it, the hub could not be asked.
    """
    if cached is None and fix:
        raise unusable(name, failure, fix=fix)
    if cached is None:
        raise ModelUnavailableError(
            f"There is no folder {name}, and {failure}, so the model cannot be looked for there.",
            fix="Check the spelling and the network, or give --model a folder. `--model tiny` "
            "works without a download.",
        )
    log.info("%s; the model %s was downloaded before", failure, name)
    return cached


def _find_cached_folder(name: str) -> Path | None:
    """Return a model's folder in the cache, or None if the cache lacks it or cannot be read."""
    try:
        return Path(
            snapshot_download(
                name,
                allow_patterns=[*_WANTED, _SAFE],
                ignore_patterns=_UNWANTED,
                local_files_only=True,
            )
        )
    except OSError:
        return None


def _check_disk(name: str, size: int) -> None:
    """Raise ModelUnavailableError if a download of `size` bytes does not fit on the disk."""
    cache = Path(constants.HF_HUB_CACHE)
    existing = next(path for path in (cache, *cache.absolute().parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if size > free:
        raise unusable(
            name,
            f"its download takes up to {size / 1e9:.1f} GB, and {cache} has {free / 1e9:.1f} GB",
            fix="Free some space, or set HF_HOME to a folder on a larger disk.",
        )


def _not_found(name: str) -> ModelUnavailableError:
    private = "" if get_token() else " A private one needs `hf auth login` first."
    return ModelUnavailableError(
        f"There is no folder {name} and no such model on the hub.",
        fix=f"Check the spelling on {constants.ENDPOINT}.{private} `--model tiny` works without a "
        "download.",
    )
