"""Run a server that refuses root without changing the machine.

Postgres refuses to run as root. Adding an account for it, or opening the folders above its data,
would change a machine that is not ours. Two ways do neither: a user namespace in which root has
another number (the files stay root's), and the account `nobody`, which every system has.
"""

import os
import pwd
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from swarm_web.local.errors import LaunchError

# Any number but 0 would do: it is seen only inside the namespace.
_NAMESPACE = ("unshare", "--user", "--map-user=1000", "--map-group=1000")


@dataclass(frozen=True)
class Account:
    """How a process gets the rights it runs with.

    `prefix` goes before its command. `owner` is the user and group it switches to, None to stay.
    """

    prefix: tuple[str, ...] = ()
    owner: tuple[int, int] | None = None


def unprivileged_account() -> Account:
    """Return an account that is not root: the caller's own unless the caller is root."""
    if os.geteuid() != 0:
        return Account()
    return Account(prefix=_NAMESPACE) if _namespaces_work() else nobody()


def nobody() -> Account:
    """Return the account `nobody`, for root where user namespaces are refused."""
    entry = pwd.getpwnam("nobody")
    return Account(owner=(entry.pw_uid, entry.pw_gid))


def hand_over(folder: Path, account: Account) -> None:
    """Make `folder` and all in it the account's own; folders above it are left as they are.

    Raises LaunchError when the account cannot reach the folder.
    """
    user, group = account.owner or (os.geteuid(), os.getegid())
    if folder.stat().st_uid != user:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, group, follow_symlinks=False)
    if account.owner:
        require_reach(folder)


def require_reach(path: Path) -> None:
    """Raise LaunchError when a user without rights cannot pass the folders above `path`."""
    for parent in path.resolve().parents:
        if not parent.stat().st_mode & 0o001:
            raise LaunchError(
                f"Postgres refuses to run as root, and the user it would run as cannot enter "
                f"{parent}. Start as an ordinary user, choose a --state-dir that everybody can "
                f"reach, or allow user namespaces (`unshare --user true` must work)."
            )


def _namespaces_work() -> bool:
    """Try it: kernels, containers and old tools refuse in different ways."""
    if shutil.which(_NAMESPACE[0]) is None:
        return False
    return subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
