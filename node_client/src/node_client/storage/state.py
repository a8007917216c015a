"""The folder in which a client keeps what it must not forget: token, key, season, progress."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

import msgspec
from platformdirs import user_state_path

from node_client.errors import SettingsError, StateLockedError
from node_client.site import Site
from node_client.storage.durable import flush
from swarm_protocol.messages import Arm, SeasonInfo

NODE = "node.json"
PROGRESS = "progress.json"
LOCK = "lock"
# Whoever only looks whether a folder is held takes the lock for an instant.
LOOK_S = 0.3

Record = TypeVar("Record", bound=msgspec.Struct)


class Remembered(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the first `join` was told, so that the next one needs the address only.

    An `anonymous` node joined without an account: whoever loses its token loses the node.
    """

    url: str = ""
    token: str = ""
    model: str = ""
    arm: Arm | None = None
    node: str = ""
    season: SeasonInfo | None = None
    anonymous: bool = False


class Progress(msgspec.Struct, frozen=True):
    """How far training has come, for `swarm-node status`. `saved_at` is ISO 8601 in UTC."""

    step: int
    training_reward: float
    model: str
    season: str
    saved_at: str


class Lifetime(msgspec.Struct, frozen=True):
    """What a node did in all its runs and seasons.

    `tokens` are those of its own completions, `rollouts_shared` what pools took of
    `rollouts_made`, `external_used` the rollouts of others that it trained on, and `seconds` the
    time that its steps took.
    """

    steps: int = 0
    tokens: int = 0
    rollouts_made: int = 0
    rollouts_shared: int = 0
    external_used: int = 0
    seconds: float = 0.0


class StateDir:
    """One client's folder. It holds a secret, so only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def for_site(cls, site: Site) -> "StateDir":
        """Return the user's own folder for a coordinator."""
        return cls(user_state_path("swarm-node", appauthor=False) / site.folder)

    @classmethod
    def for_offline(cls) -> "StateDir":
        """Return the user's own folder for training without a coordinator."""
        return cls(user_state_path("swarm-node", appauthor=False) / "offline")

    @classmethod
    def of_user(cls) -> list["StateDir"]:
        """Return the user's own folders in which a node has joined a swarm or has trained."""
        root = user_state_path("swarm-node", appauthor=False)
        files = (file for name in (NODE, PROGRESS) for file in root.glob(f"*/{name}"))
        return [cls(folder) for folder in sorted({file.parent for file in files})]

    @property
    def progress(self) -> Path:
        """The file that tells how far training has come."""
        return self.path / PROGRESS

    @property
    def checkpoints(self) -> Path:
        """The folder of checkpoints."""
        return self.path / "checkpoints"

    @property
    def commitments(self) -> Path:
        """The file of what coordinators committed themselves to."""
        return self.path / "commitments.jsonl"

    @property
    def answers(self) -> Path:
        """The file of answers that the judge has not confirmed."""
        return self.path / "answers.jsonl"

    @property
    def heads(self) -> Path:
        """The file of what coordinators told of their chains."""
        return self.path / "heads.jsonl"

    @property
    def receipts(self) -> Path:
        """The file of what coordinators signed of having this node's answers."""
        return self.path / "receipts.jsonl"

    @property
    def metrics(self) -> Path:
        """The file with a line for each training step."""
        return self.path / "metrics.jsonl"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for this process, making it if need be.

        Raises StateLockedError when another process holds it, SettingsError when it cannot be made.
        """
        from filelock import FileLock, Timeout  # 0.1 s that `--help` need not wait for

        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK, timeout=LOOK_S)
            lock.acquire()
            _try_to_write(self.path)
        except Timeout:
            raise StateLockedError(
                f"Another swarm-node is running with the state folder {self.path}.",
                fix="Stop it first, or give this one a folder of its own with --state-dir.",
            ) from None
        except OSError as problem:
            raise SettingsError(
                f"The state folder {self.path} cannot be used: {problem.strerror or problem}.",
                fix="Check whose it is and whether its disk is full or read-only, or choose "
                "another with --state-dir.",
            ) from problem
        try:
            yield
        finally:
            lock.release()

    def is_held(self) -> bool:
        """Tell whether a process holds the folder now. Raises SettingsError when it cannot tell."""
        from filelock import FileLock, Timeout

        if not (self.path / LOCK).exists():
            return False
        try:
            with FileLock(self.path / LOCK, timeout=0):
                return False
        except Timeout:
            return True
        except OSError as problem:
            raise SettingsError(
                f"The state folder {self.path} cannot be used: {problem.strerror or problem}.",
                fix="Run this as the user that runs the node.",
            ) from problem

    def load(self) -> Remembered:
        """Return what is remembered, or an empty record. Raises SettingsError when unreadable."""
        return read_record(self.path / NODE, Remembered) or Remembered()

    def recall(self, site: Site | None) -> Remembered:
        """Return what is remembered about this site; a token is never shown to another one."""
        remembered = self.load()
        return remembered if remembered.url == (site.base if site else "") else Remembered()

    def save(self, remembered: Remembered) -> None:
        """Remember this, readable for the owner only."""
        write_record(self.path / NODE, remembered)

    def load_progress(self) -> Progress | None:
        """Return the progress at the last checkpoint, or None before the first."""
        return read_record(self.progress, Progress)

    def save_progress(self, progress: Progress) -> None:
        """Note how far training has come."""
        write_record(self.progress, progress)

    def load_lifetime(self) -> Lifetime:
        """Return the totals of the node's life at the last checkpoint."""
        return read_record(self.path / "lifetime.json", Lifetime) or Lifetime()

    def save_lifetime(self, lifetime: Lifetime) -> None:
        """Note the totals of the node's life."""
        write_record(self.path / "lifetime.json", lifetime)

    def task_key(self) -> bytes:
        """Return the secret that this node's training tasks are drawn with; made once."""
        return self._make_once("task.key")

    def signing_key(self) -> bytes:
        """Return the private key that this node signs its answers with (Ed25519); made once."""
        return self._make_once("signing.key")

    def _make_once(self, name: str) -> bytes:
        """Return 32 random bytes that the folder keeps, which any private key of Ed25519 is."""
        path = self.path / name
        try:
            if not path.exists():
                write_private(path, secrets.token_bytes(32))
            return path.read_bytes()
        except OSError as problem:
            raise SettingsError(
                f"{path} cannot be used: {problem.strerror or problem}.",
                fix="Mend it, or choose another folder with --state-dir.",
            ) from problem


def _try_to_write(folder: Path) -> None:
    """Write a file that vanishes. Raises OSError now, and not when the first checkpoint is due."""
    with TemporaryFile(dir=folder) as file:
        file.write(b"swarm-node")
        file.flush()


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Replace a record at once, readable for the owner only. Raises OSError."""
    write_private(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Return a record, or None where there is none. Raises SettingsError when unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as problem:
        raise SettingsError(
            f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.",
            fix="Mend or delete it, or choose another folder with --state-dir; join again with "
            "the token if it was lost.",
        ) from problem


def write_private(path: Path, content: bytes) -> None:
    """Replace a file at once, so that a crash leaves the old one or the new one (mode 0600)."""
    draft = path.with_name(f".{path.name}.partial")
    handle = os.open(
        draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600
    )
    with open(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
    os.replace(draft, path)
    flush(path.parent)
