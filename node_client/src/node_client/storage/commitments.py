"""Records coordinators' commitments to rounds on this machine, before the rounds end.

A round's commitment is a hash of the inputs that determine its questions (`swarm_tasks.quiz`). A
commitment recorded before the end of the round shows later that the questions were not replaced
(`swarm-node verify-round`).
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, read_lines, replace_lines
from swarm_protocol.messages import ChainHead, Restored, RoundInfo

MAX_COMMITMENTS = 10_000
# No hash in use is longer.
MAX_CHARS = 128
# A commitment received with the secret, or after it, proves nothing.
_OVER = frozenset({"closed", "void"})

log = logging.getLogger(__name__)


class RecordedCommitment(msgspec.Struct, frozen=True):
    """A line of the file of commitments: the commitment to a round, and when it was received.

    `site` is the coordinator's address, and `seen_at` the time of receipt: ISO 8601 in UTC, by this
    machine's clock. `restored` identifies the site's last restore of a backup before `seen_at`: it
    is the number of the chain link that records the restore, or 0 if there was none.
    """

    site: str
    round: int
    commitment: str
    seen_at: str
    restored: int = 0


class CommitmentLog:
    """The file with the first commitment to each round, for the latest MAX_COMMITMENTS rounds.

    A second commitment to a round is recorded only if the site lost the round by restoring an older
    backup, and so uses its number again.
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
        self._recorded = {(line.site, line.round): line for line in read_commitments(path)}
        self._unsaved: list[RecordedCommitment] = []
        self._warned: set[tuple[int, str]] = set()
        self._restored: Restored | None = None

    def update_restored(self, chain: ChainHead | None) -> None:
        """Remember which backup the site restored last, as stated in `chain`; ignore None.

        The rounds after the backup are lost, and the site uses their numbers again. `record`
        therefore accepts a second commitment to a round with the number of a lost one.
        """
        if chain is not None:
            self._restored = chain.restored

    def record(self, announced: RoundInfo | None) -> None:
        """Record the commitment to a round that is not over yet, if none is recorded so far.

        If a different commitment to this round is recorded, the new one is not recorded, and a
        warning is logged. There is one exception: if the site lost the recorded round by restoring
        a backup, the new commitment is recorded.

        Nothing happens if `announced` is None, if the round is over, or if the commitment is empty
        or too long. If the file cannot be written, a warning is logged, and the commitment is
        written together with the next one.
        """
        if announced is None or announced.phase in _OVER:
            return
        if not 0 < len(announced.commitment) <= MAX_CHARS:
            return
        recorded = self._recorded.get((self._site.base, announced.number))
        if recorded is None or self._was_lost(recorded):
            self._append(announced)
        elif recorded.commitment != announced.commitment:
            self._warn_of_change(announced, recorded)

    def _was_lost(self, recorded: RecordedCommitment) -> bool:
        """Return whether the site lost the recorded round by later restoring an older backup."""
        backup = self._restored
        if backup is None:
            return False
        # An older backup can be restored later, so the number may be smaller than the recorded one.
        return recorded.restored != backup.sequence and recorded.round > backup.round

    def _append(self, announced: RoundInfo) -> None:
        line = RecordedCommitment(
            site=self._site.base,
            round=announced.number,
            commitment=announced.commitment,
            seen_at=self._clock().isoformat(timespec="seconds"),
            restored=self._restored.sequence if self._restored is not None else 0,
        )
        self._recorded[line.site, line.round] = line
        self._unsaved.append(line)
        try:
            if len(self._recorded) > MAX_COMMITMENTS:
                self._forget_oldest()
            else:
                append_lines(self._path, self._unsaved)
        except OSError as problem:
            log.warning("the commitment to round %d was not recorded: %s", line.round, problem)
        else:
            self._unsaved.clear()

    def _forget_oldest(self) -> None:
        for oldest in list(islice(self._recorded, len(self._recorded) - MAX_COMMITMENTS)):
            del self._recorded[oldest]
        replace_lines(self._path, self._recorded.values())

    def _warn_of_change(self, announced: RoundInfo, recorded: RecordedCommitment) -> None:
        """Warn that the coordinator changed a commitment, once for each new value."""
        if (announced.number, announced.commitment) not in self._warned:
            self._warned.add((announced.number, announced.commitment))
            log.warning(
                "the coordinator changed its commitment to round %d: %s on %s, now %s",
                announced.number,
                recorded.commitment,
                recorded.seen_at,
                announced.commitment,
            )


def find_commitment(path: Path, *, site: Site, number: int) -> RecordedCommitment | None:
    """Return the latest commitment recorded for round `number` of a site; None without one.

    Raises SettingsError when the file exists and cannot be read.
    """
    found = [
        line for line in read_commitments(path) if (line.site, line.round) == (site.base, number)
    ]
    # A second one is recorded only after a restored backup.
    return found[-1] if found else None


def read_commitments(path: Path) -> list[RecordedCommitment]:
    """Return all recorded commitments, oldest first; an empty list if there is no file.

    A line that cannot be decoded is skipped. Raises SettingsError if the file exists and cannot be
    read.
    """
    return read_lines(path, RecordedCommitment)
