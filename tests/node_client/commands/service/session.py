"""A real systemd user session, for tests as root on a machine that need not have booted systemd.

The manager has its own mounts and cgroup; it listens in a folder of the test.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MANAGER = Path("/lib/systemd/systemd")
HIERARCHIES = (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup"))
# A manager refuses to run on a machine without systemd, and requires its own version 2 cgroup.
ENTER = """
mkdir "$1" && echo $$ > "$1/cgroup.procs"
exec unshare --cgroup --mount --propagation private sh -ec '
    mount -t tmpfs none /run && mkdir -p /run/systemd/system
    umount --lazy /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
    exec "$0" --user --log-target=console' "$2"
"""


def missing_for_session() -> str:
    """Return what is missing for a session, or an empty string."""
    if not MANAGER.exists() or shutil.which("unshare") is None:
        return "there is no systemd here"
    if os.geteuid() != 0:
        return "only root can make a session"
    return "" if _hierarchy() is not None else "there are no cgroups of version 2 here"


@contextmanager
def running_session(folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a manager with this environment, including XDG_RUNTIME_DIR, until the block ends."""
    hierarchy = _hierarchy()
    assert hierarchy is not None
    cgroup = hierarchy / f"session-{os.getpid()}"
    runtime = Path(environment["XDG_RUNTIME_DIR"])
    runtime.mkdir(mode=0o700)
    with (folder / "session.log").open("wb") as log:
        manager = subprocess.Popen(
            ["sh", "-ec", ENTER, "sh", str(cgroup), str(MANAGER)],
            env=environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield
    finally:
        manager.send_signal(signal.SIGRTMIN + 24)  # systemd(1): exit immediately, with all units
        manager.wait(20)
        for child in sorted(cgroup.rglob("*/"), reverse=True):
            child.rmdir()
        cgroup.rmdir()


def _hierarchy() -> Path | None:
    return next((each for each in HIERARCHIES if (each / "cgroup.procs").exists()), None)
