"""Keeps answers on disk until the judge has acknowledged them.

An answer is on the disk before it is sent. A client that is killed before the acknowledgement
submits the same answer after its next start, and answers no question twice.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from node_client.site import Site
from node_client.storage.lines import append_lines, replace_lines
from swarm_protocol.messages import AnswerText, FinishReason, Signature

VERSION = 1
# Far more than the questions of a round. Over this number the oldest answers are dropped.
MAX_PENDING = 4096
# Number of latest rounds whose settled questions are remembered: the open one, and one before.
MAX_ROUNDS = 2

log = logging.getLogger(__name__)

PendingAnswer = tuple[int, AnswerText]


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of the file of answers: a pending answer, or the question of a settled one."""

    owner: str
    round: int
    question: str
    text: str = ""
    finish_reason: FinishReason = "stop"
    settled: bool = False
    signature: Signature | None = None
    v: int = 1


class AnswerSpool:
    """The answers of one node, in a file and in memory.

    An answer is pending until `settle` marks it as settled, that is, as not to be sent again. The
    node is the one with `token` at `site`. Lines of other nodes are ignored, and lost when the file
    is rewritten. Damaged lines are skipped with a warning. If the file cannot be written, a warning
    is logged and answers are kept in memory only.
    """

    def __init__(self, path: Path, *, site: Site, token: str) -> None:
        self._path = path
        self._owner = hashlib.sha256(f"{site.base}\n{token}".encode()).hexdigest()[:16]
        self._lines = {
            (line.round, line.question): line for line in _read(path) if line.owner == self._owner
        }

    @property
    def pending(self) -> list[PendingAnswer]:
        """The pending answers, oldest first, as pairs of round number and answer."""
        return [
            (line.round, AnswerText(line.question, line.text, line.finish_reason, line.signature))
            for line in self._lines.values()
            if not line.settled
        ]

    @property
    def settled(self) -> Counter[int]:
        """The number of settled answers (`settle`) by round, for the latest MAX_ROUNDS rounds."""
        return Counter(line.round for line in self._lines.values() if line.settled)

    def answered(self, number: int) -> frozenset[str]:
        """Return the ids of a round's questions for which there is an answer.

        Pending and settled answers both count.
        """
        return frozenset(question for round_, question in self._lines if round_ == number)

    def add(self, answers: Sequence[PendingAnswer]) -> None:
        """Save answers. They are on the disk when this returns, unless a warning was logged."""
        lines = [
            _Line(
                self._owner,
                number,
                answer.question,
                answer.text,
                answer.finish_reason,
                signature=answer.signature,
            )
            for number, answer in answers
        ]
        self._lines |= {(line.round, line.question): line for line in lines}
        try:
            append_lines(self._path, lines, durable=True)
        except OSError as problem:
            log.warning("answers cannot be saved to disk before they are sent: %s", problem)

    def settle(self, answers: Sequence[PendingAnswer]) -> None:
        """Mark `answers` as settled, that is, as not to be sent again, and drop their texts.

        Settle an answer when the judge has acknowledged it or refused it permanently, or when the
        outbox has dropped it. The ids of settled questions are kept for the latest MAX_ROUNDS
        rounds. Of the answers that are still pending, only the latest MAX_PENDING are kept.
        """
        for number, answer in answers:
            self._lines[number, answer.question] = _Line(
                self._owner, number, answer.question, settled=True
            )
        self._trim()
        try:
            replace_lines(self._path, self._lines.values())
        except OSError as problem:
            log.warning("%s still has answers that were submitted: %s", self._path, problem)

    def _trim(self) -> None:
        # In the order of the answers, because after a restored backup numbers start lower again.
        latest = list(dict.fromkeys(number for number, _ in reversed(self._lines)))[:MAX_ROUNDS]
        pending = [key for key, line in self._lines.items() if not line.settled][-MAX_PENDING:]
        settled = [
            key for key, line in self._lines.items() if line.settled and line.round in latest
        ]
        kept = {*pending, *settled}
        self._lines = {key: line for key, line in self._lines.items() if key in kept}


def _read(path: Path) -> list[_Line]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as problem:
        log.warning("%s cannot be read, so answers in it are lost: %s", path, problem)
        return []
    lines = []
    for place, text in enumerate(raw.splitlines(), start=1):
        try:
            line = msgspec.json.decode(text, type=_Line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            log.warning("line %d of %s is damaged: one answer to the judge is lost", place, path)
            continue
        if line.v == VERSION:
            lines.append(line)
        else:
            log.warning("line %d of %s is of another version of swarm-node", place, path)
    return lines
