"""Keeps coordinators' signed receipts for this node's answers, for `swarm-node verify-round`."""

import logging
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, read_lines, replace_lines
from swarm_record.answers import AnswerEntry, encode_signed_receipt
from swarm_record.keys import is_signed

# A round gives one or a few receipts. This many take about ten megabytes.
MAX_RECEIPTS = 4_000

log = logging.getLogger(__name__)


class StoredReceipt(msgspec.Struct, frozen=True):
    """A line of the file of receipts: the site's receipt for a node's `answers` in a round.

    `signature` is the site's signature of the answers in this order, the round, its commitment and
    `received_at`. It is valid under the public key `key`.
    """

    site: str
    round: int
    commitment: str
    received_at: str
    answers: list[AnswerEntry]
    key: str
    signature: str

    @property
    def is_genuine(self) -> bool:
        """Whether the signature is valid."""
        stated = encode_signed_receipt(
            self.answers,
            number=self.round,
            commitment=self.commitment,
            received_at=self.received_at,
        )
        return is_signed(stated, key=self.key, signature=self.signature)


class ReceiptLog:
    """The file of receipts. When there are more than MAX_RECEIPTS, the older half is removed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = len(read_lines(path, StoredReceipt))

    def append(self, receipt: StoredReceipt) -> None:
        """Append a receipt to the file.

        If the file then has more than MAX_RECEIPTS receipts, only the latest MAX_RECEIPTS / 2 are
        kept. If the file cannot be written, only a warning is logged.
        """
        try:
            append_lines(self._path, [receipt])
            self._count += 1
            if self._count > MAX_RECEIPTS:
                self._forget_oldest()
        except OSError as problem:
            log.warning("a receipt of round %d was not kept: %s", receipt.round, problem)

    def _forget_oldest(self) -> None:
        latest = read_lines(self._path, StoredReceipt)[-MAX_RECEIPTS // 2 :]
        replace_lines(self._path, latest)
        self._count = len(latest)


def find_receipts(path: Path, *, site: Site, number: int) -> list[StoredReceipt]:
    """Return the receipts for round `number` of a site; an empty list if there is no file.

    Raises SettingsError when the file exists and cannot be read.
    """
    kept = read_lines(path, StoredReceipt)
    return [each for each in kept if (each.site, each.round) == (site.base, number)]
