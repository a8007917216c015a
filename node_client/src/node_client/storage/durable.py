"""Waits until files are on the disk, and removes folders so that a crash leaves no part of them."""

import errno
import logging
import os
import shutil
from pathlib import Path

log = logging.getLogger(__name__)

# Windows cannot open folders; its file system journals names itself.
FOLDERS_CAN_BE_FLUSHED = os.name != "nt"
# Errors of network file systems that cannot flush a folder.
CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


def flush(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on the disk. Raises OSError.

    Does nothing for a folder if the system or its file system cannot flush folders.
    """
    is_folder = path.is_dir()
    if is_folder and not FOLDERS_CAN_BE_FLUSHED:
        return
    # Windows flushes only files opened for writing; other systems open folders only for reading.
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as problem:
        if not is_folder or problem.errno not in CANNOT:
            raise
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Wait until a folder and all files and folders below it are on the disk. Raises OSError."""
    for path in (*sorted(folder.rglob("*")), folder):
        flush(path)


def discard(folder: Path) -> None:
    """Rename a folder and then remove it, so that a crash leaves no part of it under its old name.

    If it cannot be removed, only a warning is logged.
    """
    try:
        gone = folder.rename(folder.with_name(f".{folder.name.lstrip('.')}.gone"))
        shutil.rmtree(gone)
    except OSError as problem:
        log.warning("%s could not be removed: %s", folder, problem)
