"""The state folder of a client, and its files: token, keys, season, progress."""

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
# Commands that check whether a folder is in use hold the lock for an instant.
LOCK_WITHIN_S = 0.3

Record = TypeVar("Record", bound=msgspec.Struct)


class NodeRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a client remembers of its node, so that the next `join` needs the address only.

    `url` is the coordinator's address, empty for training without a coordinator. An `anonymous`
    node belongs to no account, so it is lost if its token is lost.
    """

    url: str = ""
    token: str = ""
    model: str = ""
    arm: Arm | None = None
    node: str = ""
    season: SeasonInfo | None = None
    anonymous: bool = False


class TrainingProgress(msgspec.Struct, frozen=True):
    """The progress at the last checkpoint. `saved_at` is ISO 8601 in UTC."""

    step: int
    training_reward: float
    model: str
    season: str
    saved_at: str


class Lifetime(msgspec.Struct, frozen=True):
    """Totals of a node over all its runs and seasons.

    `tokens` counts the tokens of its own completions, `rollouts_made` its own rollouts,
    `rollouts_shared` the own rollouts that the relay accepted, and `external_used` the external
    rollouts in its training sets. `seconds` is the duration of its steps.
    """

    steps: int = 0
    tokens: int = 0
    rollouts_made: int = 0
    rollouts_shared: int = 0
    external_used: int = 0
    seconds: float = 0.0


class StateDir:
    """One client's folder, with the paths of its files.

    Other users cannot read its token and keys. If the client created the folder, they can read
    nothing in it.

    These attributes are paths of files: `commitments` (coordinators' commitments to rounds),
    `heads` (the newest hashes of their public chains, as received), `answers` (answers that the
    judge has not acknowledged), `receipts` (signed receipts for this node's answers) and `metrics`
    (a line for each training step).

    The methods `load...` raise SettingsError when a file exists and cannot be read; the methods
    `save...` raise OSError.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.progress = path / PROGRESS
        self.checkpoints = path / "checkpoints"
        self.commitments = path / "commitments.jsonl"
        self.answers = path / "answers.jsonl"
        self.heads = path / "heads.jsonl"
        self.receipts = path / "receipts.jsonl"
        self.metrics = path / "metrics.jsonl"

    @classmethod
    def default(cls, site: Site | None) -> "StateDir":
        """Return the user's default folder for a coordinator, or for training without one."""
        folder = "offline" if site is None else site.folder
        return cls(user_state_path("swarm-node", appauthor=False) / folder)

    @classmethod
    def of_user(cls) -> list["StateDir"]:
        """Return the user's default folders in which a node has joined a swarm or has trained."""
        root = user_state_path("swarm-node", appauthor=False)
        files = (file for name in (NODE, PROGRESS) for file in root.glob(f"*/{name}"))
        return [cls(folder) for folder in sorted({file.parent for file in files})]

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder's lock during the body of `with`; create the folder if needed.

        Raises StateLockedError if another process still has the lock after LOCK_WITHIN_S seconds.
        Raises SettingsError if the folder cannot be written.
        """
        from filelock import FileLock, Timeout  # takes 0.1 s, which `--help` need not wait for

        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = FileLock(self.path / LOCK, timeout=LOCK_WITHIN_S)
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
                fix="Check its owner and whether its disk is full or read-only, or choose "
                "another with --state-dir.",
            ) from problem
        try:
            yield
        finally:
            lock.release()

    def is_locked(self) -> bool:
        """Return whether a process has locked the folder.

        Raises SettingsError when the lock cannot be opened.
        """
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

    def load(self) -> NodeRecord:
        """Return the node's record, or an empty one before the first `join`."""
        return read_record(self.path / NODE, NodeRecord) or NodeRecord()

    def load_for(self, site: Site | None) -> NodeRecord:
        """Return the node's record if it is for `site`, otherwise an empty one.

        This ensures that a token is sent only to the site that issued it. None stands for training
        without a site.
        """
        remembered = self.load()
        return remembered if remembered.url == (site.base if site else "") else NodeRecord()

    def save(self, remembered: NodeRecord) -> None:
        """Save the node's record with mode 0600.

        Raises SettingsError if it would replace the token of an anonymous node by another token. An
        empty token may replace it. Raises OSError when the file cannot be written.
        """
        if remembered.token:
            check_replaceable(self.load(), token=remembered.token)
        write_record(self.path / NODE, remembered)

    def load_progress(self) -> TrainingProgress | None:
        """Return the progress at the last checkpoint, or None before the first."""
        return read_record(self.progress, TrainingProgress)

    def save_progress(self, progress: TrainingProgress) -> None:
        """Save the progress of training."""
        write_record(self.progress, progress)

    def load_lifetime(self) -> Lifetime:
        """Return the node's totals at the last checkpoint; zeros before the first."""
        return read_record(self.path / "lifetime.json", Lifetime) or Lifetime()

    def save_lifetime(self, lifetime: Lifetime) -> None:
        """Save the node's totals over all its runs and seasons."""
        write_record(self.path / "lifetime.json", lifetime)

    def task_key(self) -> bytes:
        """Return the 32-byte secret for drawing this node's training tasks; it is created once.

        Raises SettingsError when the file cannot be read or written, or is damaged.
        """
        return self._create_once("task.key")

    def signing_key(self) -> bytes:
        """Return the 32-byte private key (Ed25519) for signing answers; it is created once.

        Raises SettingsError when the file cannot be read or written, or is damaged.
        """
        return self._create_once("signing.key")

    def _create_once(self, name: str) -> bytes:
        """Return the 32 random bytes in the file `name`, which is created if it is missing.

        Any 32 bytes are a valid Ed25519 key.
        """
        path = self.path / name
        try:
            if not path.exists():
                write_private(path, secrets.token_bytes(32))
            key = path.read_bytes()
        except OSError as problem:
            raise SettingsError(
                f"{path} cannot be used: {problem.strerror or problem}.",
                fix="Repair it, or choose another folder with --state-dir.",
            ) from problem
        if len(key) != 32:
            raise SettingsError(
                f"{path} has {len(key)} bytes instead of 32, so it is damaged.",
                fix="Restore it from a backup. If there is none, delete it: a new one is created.",
            )
        return key


def check_replaceable(stored: NodeRecord, *, token: str = "") -> None:
    """Raise SettingsError if the record's node is lost when `token` replaces its token.

    This is so if the node is anonymous and has another token.
    """
    if stored.anonymous and stored.token not in ("", token):
        raise SettingsError(
            f"{stored.node} at {stored.url} belongs to no account, so it could not be continued "
            "without the token on this machine.",
            fix=f"`swarm-node claim {stored.url}` adds it to your account first; "
            f"`swarm-node logout {stored.url} --force` abandons it. Another node can have another "
            "folder with --state-dir.",
        )


def _try_to_write(folder: Path) -> None:
    """Write a temporary file, so that OSError is raised now and not at the first checkpoint."""
    with TemporaryFile(dir=folder) as file:
        file.write(b"swarm-node")
        file.flush()


def write_record(path: Path, record: msgspec.Struct) -> None:
    """Write a record as JSON, atomically and with mode 0600. Raises OSError."""
    write_private(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Return the record in a JSON file, None if the file does not exist.

    Raises SettingsError when it exists and cannot be read.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(
            f"{path} cannot be read: {getattr(problem, 'strerror', None) or problem}.",
            fix="Repair or delete it, or choose another folder with --state-dir; join again with "
            "the token if it was lost.",
        ) from problem


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically and with mode 0600: a crash leaves the old or the new content.

    The new content is on the disk when this returns. Raises OSError.
    """
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
