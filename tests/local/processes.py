"""Inspect the machine's processes and shared memory, through /proc."""

import os
from pathlib import Path


def processes_inside(folder: Path) -> set[int]:
    """Return the ids of the processes whose working directory is in `folder`."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                cwd = Path(os.readlink(entry / "cwd"))
            except OSError:
                continue  # It has ended, or is a zombie.
            if cwd.is_relative_to(folder):
                found.add(int(entry.name))
    return found


def children_of(pid: int) -> dict[int, str]:
    """Return the command lines of the process's children, by their ids."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                # The fields after the program's name: state, parent, ...
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                command = (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue  # It has ended.
            if parent == str(pid):
                found[int(entry.name)] = command.replace("\0", " ")
    return found


def shared_memory_of(pid: int) -> set[str]:
    """Return the names of the process's POSIX segments and the ids of its System V segments.

    Return none if the process has ended: some processes of Postgres are short-lived.
    """
    names: set[str] = set()
    try:
        lines = Path("/proc", str(pid), "maps").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return names
    for line in lines:
        columns = line.split(maxsplit=5)
        path = columns[5] if len(columns) == 6 else ""
        if path.startswith("/dev/shm/"):
            names.add(path.split()[0])
        elif path.startswith("/SYSV"):
            names.add(f"sysv {columns[4]}")
    return names


def existing_shared_memory() -> set[str]:
    """Return the names of all shared memory of the machine."""
    lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
    posix = {str(path) for path in Path("/dev/shm").iterdir()}
    return posix | {f"sysv {line.split()[1]}" for line in lines}


def listening_ports() -> set[int]:
    """Return the TCP ports on which a process listens over IPv4."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {int(columns[1].split(":")[1], 16) for columns in lines if columns[3] == "0A"}
