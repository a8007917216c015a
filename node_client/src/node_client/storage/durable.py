"""What makes a file survive a crash: waiting for the disk, and changing names at once."""

import errno
import logging
import os
import shutil
from pathlib import Path

log = logging.getLogger(__name__)

# Windows opens no folders; its file system journals names by itself.
FOLDERS_CAN_BE_FLUSHED = os.name != "nt"
# What file systems over a network answer when they cannot flush a folder either.
CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


def flush(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk. Raises OSError."""
    is_folder = path.is_dir()
    if is_folder and not FOLDERS_CAN_BE_FLUSHED:
        return
    # Windows flushes only what was opened for writing, others open folders only for reading.
    handle = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as problem:
        if not is_folder or problem.errno not in CANNOT:
            raise
    finally:
        os.close(handle)


def flush_tree(folder: Path) -> None:
    """Wait until a folder with all that is in it is on the disk. Raises OSError."""
    for path in (*sorted(folder.rglob("*")), folder):
        flush(path)


def discard(folder: Path) -> None:
    """Remove a folder, so that a crash on the way leaves no half of it under its name.

    What cannot be removed stays; a warning says so.
    """
    try:
        gone = folder.rename(folder.with_name(f".{folder.name.lstrip('.')}.gone"))
        shutil.rmtree(gone)
    except OSError as problem:
        log.warning("%s could not be removed: %s", folder, problem)
