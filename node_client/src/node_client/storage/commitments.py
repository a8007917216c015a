"""What a coordinator committed itself to before its rounds were answered, noted on this machine.

A round's commitment is a hash of what decides its questions (`swarm_tasks.quiz`). Whoever noted it
while the round was not over can tell afterwards that the questions were not exchanged
(`swarm-node verify-round`).
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, read_lines
from node_client.storage.state import write_private
from swarm_protocol.messages import ChainHead, Restored, RoundInfo

KEPT = 10_000
# No hash in use is longer; what is longer comes from no coordinator of this project.
MOST_CHARS = 128
# A commitment that comes with the secret, or after it, proves nothing.
_OVER = frozenset({"closed", "void"})

log = logging.getLogger(__name__)


class NotedCommitment(msgspec.Struct, frozen=True):
    """A line of the file. `seen_at` is ISO 8601 in UTC, by this machine's clock.

    `restored` is the link of the chain that told last of a backup, when the line was written.
    """

    site: str
    round: int
    commitment: str
    seen_at: str
    restored: int = 0


class CommitmentLog:
    """The file of noted commitments: the first one of each round, and the latest KEPT of them.

    Only a restored backup makes a second one of a round count.
    """

    def __init__(
        self,
        path: Path,
        *,
        site: Site,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path
        self._site = site
        self._clock = clock
        self._noted: dict[tuple[str, int], NotedCommitment] = {}
        for line in read_commitments(path):
            self._noted[line.site, line.round] = line
        self._blamed: set[tuple[int, str]] = set()
        self._restored: Restored | None = None

    def follow(self, chain: ChainHead | None) -> None:
        """Take note of a backup that the chain says was restored: later rounds are made anew."""
        if chain is not None:
            self._restored = chain.restored

    def note(self, announced: RoundInfo | None) -> None:
        """Note a round's commitment if it is the first one; a full disk costs only the note."""
        if announced is None or announced.phase in _OVER:
            return
        if not 0 < len(announced.commitment) <= MOST_CHARS:
            return
        known = self._noted.get((self._site.base, announced.number))
        if known is None or self._was_undone(known):
            self._append(announced)
        elif known.commitment != announced.commitment:
            self._blame(announced, known)

    def _was_undone(self, known: NotedCommitment) -> bool:
        """Tell whether a round was lost in a backup after its commitment was noted."""
        told = self._restored
        return told is not None and known.restored < told.sequence and known.round > told.round

    def _append(self, announced: RoundInfo) -> None:
        line = NotedCommitment(
            site=self._site.base,
            round=announced.number,
            commitment=announced.commitment,
            seen_at=self._clock().isoformat(timespec="seconds"),
            restored=self._restored.sequence if self._restored is not None else 0,
        )
        self._noted[line.site, line.round] = line
        try:
            if len(self._noted) > KEPT:
                self._forget_oldest()
            else:
                append_lines(self._path, [_encode(line)])
        except OSError as problem:
            log.warning("the commitment to round %d was not noted: %s", line.round, problem)

    def _forget_oldest(self) -> None:
        for oldest in list(islice(self._noted, len(self._noted) - KEPT)):
            del self._noted[oldest]
        write_private(self._path, b"".join(_encode(line) + b"\n" for line in self._noted.values()))

    def _blame(self, announced: RoundInfo, known: NotedCommitment) -> None:
        """Warn, once, that the coordinator says something else than it did."""
        if (announced.number, announced.commitment) not in self._blamed:
            self._blamed.add((announced.number, announced.commitment))
            log.warning(
                "the coordinator changed its commitment to round %d: %s on %s, now %s",
                announced.number,
                known.commitment,
                known.seen_at,
                announced.commitment,
            )


def find_commitment(path: Path, *, site: Site, number: int) -> NotedCommitment | None:
    """Return the commitment that this machine noted for a round. Raises SettingsError."""
    found = [
        line for line in read_commitments(path) if (line.site, line.round) == (site.base, number)
    ]
    # A later one is noted only after a backup.
    return found[-1] if found else None


def read_commitments(path: Path) -> list[NotedCommitment]:
    """Return what was noted, oldest first, without lines that a crash left unfinished.

    Raises SettingsError when the file is there and cannot be read.
    """
    return read_lines(path, NotedCommitment)


def _encode(line: NotedCommitment) -> bytes:
    return msgspec.json.encode(line)
