"""Landlock (Linux 5.13 and later): limits which files this process may open.

https://docs.kernel.org/userspace-api/landlock.html. The constants come from <linux/landlock.h>. The
three system calls have the same numbers on every architecture.
"""

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3

# The number of kinds of file access that each version of the interface can refuse.
_FILE_ACCESS_BITS = {1: 13, 2: 14, 3: 15, 4: 15}
_FILE_ACCESS_BITS_SINCE_5 = 16
_ALL_TCP = 0b11
_ALL_SCOPES = 0b11


def landlock_version() -> int:
    """Return the version of Landlock's interface in this kernel, 0 if Landlock is unavailable."""
    libc = ctypes.CDLL(None, use_errno=True)
    return max(int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION_FLAG)), 0)


def allow_reading_only(paths: Iterable[Path]) -> None:
    """Permanently limit this thread's file access to reading files at or below `paths`.

    The limit also applies to threads and processes that this thread starts later. Paths that do not
    exist are skipped. From version 4 of Landlock's interface on, the thread also cannot bind or
    connect TCP sockets. From version 6 on, it also cannot send signals to processes outside the
    sandbox, or connect to their abstract Unix sockets. Needs no_new_privs or CAP_SYS_ADMIN. Raises
    OSError if the kernel refuses or has no Landlock.
    """
    version = landlock_version()
    if version == 0:
        raise OSError("this kernel has no Landlock")
    ruleset = _call(_CREATE_RULESET, *_ruleset_attributes(version), 0)
    try:
        for path in paths:
            _allow_reading(ruleset, path)
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _ruleset_attributes(version: int) -> tuple[ctypes.Array[ctypes.c_char], ctypes.c_size_t]:
    """Return the struct landlock_ruleset_attr of an interface version, and its length."""
    files = (1 << _FILE_ACCESS_BITS.get(version, _FILE_ACCESS_BITS_SINCE_5)) - 1
    raw = struct.pack("<Q", files)
    if version >= 4:
        raw += struct.pack("<Q", _ALL_TCP)
    if version >= 6:
        raw += struct.pack("<Q", _ALL_SCOPES)
    return ctypes.create_string_buffer(raw, len(raw)), ctypes.c_size_t(len(raw))


def _allow_reading(ruleset: int, path: Path) -> None:
    try:
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        access = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
        rule = struct.pack("<Qi", access, folder)
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.create_string_buffer(rule, len(rule)), 0)
    finally:
        os.close(folder)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(number, *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return result
