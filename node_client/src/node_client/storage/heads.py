"""Records the chain heads that this machine receives from coordinators.

A head is the hash of the chain's newest link and covers all links before it. `swarm-node
verify-round` uses the recorded heads to detect whether one of these links was changed later.
"""

import logging
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, read_lines, replace_lines
from swarm_protocol.messages import ChainHead
from swarm_record.chain import encode_signed_head
from swarm_record.keys import is_signed

MAX_HEADS = 10_000

log = logging.getLogger(__name__)


class RecordedHead(msgspec.Struct, frozen=True):
    """A line of the file of heads: link `sequence` of the chain at `site` has the hash `head`.

    `signature` is the site's signature, valid under its public key `key`, so the line proves to
    anyone that the site published this hash. `seen_at` is the time of receipt: ISO 8601 in UTC, by
    this machine's clock.
    """

    site: str
    sequence: int
    head: str
    key: str
    signature: str
    seen_at: str


class HeadLog:
    """The file of received heads: one head for each link, or more if the site changed the link.

    When the file has more than MAX_HEADS links, it is cut to the latest MAX_HEADS / 2 links, each
    with only its latest head.
    """

    def __init__(self, path: Path, *, site: Site) -> None:
        self._path = path
        self._site = site
        self._recorded = {(line.site, line.sequence): line for line in read_heads(path)}
        self._changed: set[int] = set()
        self._unsaved: list[RecordedHead] = []

    def record(self, head: ChainHead | None) -> None:
        """Record a head, unless it is None or already recorded.

        A head without a valid signature is not recorded. If another head is recorded for the same
        link, the site has changed this link. The new head is then recorded too, and further heads
        of this link are ignored for the rest of the run. A warning about the change is logged,
        unless `head.restored` says that the site restored a backup.

        If the file cannot be written, a warning is logged, and the head is written together with
        the next one.
        """
        if head is None or self._is_known(head):
            return
        stated = encode_signed_head(sequence=head.sequence, head=head.head)
        if not is_signed(stated, key=head.key, signature=head.signature):
            log.warning("the coordinator's chain head has no valid signature; it is not recorded")
            return
        self._note_change(head)
        line = RecordedHead(
            site=self._site.base,
            sequence=head.sequence,
            head=head.head,
            key=head.key,
            signature=head.signature,
            seen_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        try:
            self._append(line)
        except OSError as problem:
            log.warning("link %d of the chain was not recorded: %s", head.sequence, problem)

    def _is_known(self, head: ChainHead) -> bool:
        """Return whether to ignore a head: it is recorded, or its link is marked as changed."""
        recorded = self._recorded.get((self._site.base, head.sequence))
        return head.sequence in self._changed or (
            recorded is not None and recorded.head == head.head
        )

    def _note_change(self, head: ChainHead) -> None:
        """If another head is recorded for the same link, mark the link as changed; log a warning.

        Later heads of a link marked as changed are ignored (`_is_known`). No warning is logged if
        `head.restored` says that the site restored a backup.
        """
        recorded = self._recorded.get((self._site.base, head.sequence))
        if recorded is None:
            return
        self._changed.add(head.sequence)
        if head.restored is None:
            log.warning(
                "the coordinator changed link %d of its chain: %s on %s, now %s",
                *(head.sequence, recorded.head, recorded.seen_at, head.head),
            )

    def _append(self, line: RecordedHead) -> None:
        self._recorded[line.site, line.sequence] = line
        self._unsaved.append(line)
        append_lines(self._path, self._unsaved)
        self._unsaved.clear()
        if len(self._recorded) > MAX_HEADS:
            self._recorded = dict(list(self._recorded.items())[-MAX_HEADS // 2 :])
            replace_lines(self._path, self._recorded.values())


def read_heads(path: Path) -> list[RecordedHead]:
    """Return all recorded heads, oldest first; an empty list if there is no file.

    A line that cannot be decoded is skipped. Raises SettingsError when the file cannot be read.
    """
    return read_lines(path, RecordedHead)


def find_heads(path: Path, *, site: Site) -> list[RecordedHead]:
    """Return one site's heads, oldest first. Raises SettingsError when the file cannot be read."""
    return [line for line in read_heads(path) if line.site == site.base]
