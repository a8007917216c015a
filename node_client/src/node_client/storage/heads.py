"""What this machine saw of a coordinator's chain, noted as it came.

Each link's hash stands for all links before it. So whoever noted one can tell afterwards whether
any of them was changed (`swarm-node verify-round`).
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, read_lines
from node_client.storage.state import write_private
from swarm_protocol.messages import ChainHead
from swarm_record.chain import encode_signed_head
from swarm_record.keys import is_signed

KEPT = 10_000

log = logging.getLogger(__name__)


class NotedHead(msgspec.Struct, frozen=True):
    """A line of the file: the site's signature by `key` makes it evidence for others too.

    `seen_at` is ISO 8601 in UTC, by this machine's clock.
    """

    site: str
    sequence: int
    head: str
    key: str
    signature: str
    seen_at: str


class HeadLog:
    """The file of noted heads: one at each place, or two that differ, and the latest KEPT."""

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
        self._noted = {(line.site, line.sequence): line for line in read_heads(path)}
        self._changed: set[int] = set()

    def note(self, told: ChainHead | None) -> None:
        """Note a head that is new here and signed; a full disk costs only the note."""
        if told is None or self._is_known(told):
            return
        stated = encode_signed_head(sequence=told.sequence, head=told.head)
        if not is_signed(stated, key=told.key, signature=told.signature):
            log.warning("the coordinator did not sign the head of its chain; it is not noted")
            return
        line = NotedHead(
            site=self._site.base,
            sequence=told.sequence,
            head=told.head,
            key=told.key,
            signature=told.signature,
            seen_at=self._clock().isoformat(timespec="seconds"),
        )
        try:
            self._append(line)
        except OSError as problem:
            log.warning("link %d of the chain was not noted: %s", told.sequence, problem)

    def _is_known(self, told: ChainHead) -> bool:
        """Tell whether the head was noted; another one at its place is noted once, as evidence."""
        known = self._noted.get((self._site.base, told.sequence))
        if known is None or known.head == told.head:
            return known is not None
        if told.sequence in self._changed:
            return True
        self._changed.add(told.sequence)
        if told.restored is None:
            log.warning(
                "the coordinator changed link %d of its chain: %s on %s, now %s",
                *(told.sequence, known.head, known.seen_at, told.head),
            )
        return False

    def _append(self, line: NotedHead) -> None:
        self._noted[line.site, line.sequence] = line
        append_lines(self._path, [msgspec.json.encode(line)])
        if len(self._noted) > KEPT:
            latest = list(self._noted.items())[-KEPT // 2 :]
            self._noted = dict(latest)
            lines = b"".join(msgspec.json.encode(line) + b"\n" for line in self._noted.values())
            write_private(self._path, lines)


def read_heads(path: Path) -> list[NotedHead]:
    """Return what was noted, oldest first. Raises SettingsError when it cannot be read."""
    return read_lines(path, NotedHead)


def find_heads(path: Path, *, site: Site) -> list[NotedHead]:
    """Return what was noted of a site. Raises SettingsError when it cannot be read."""
    return [line for line in read_heads(path) if line.site == site.base]
