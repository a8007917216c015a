"""A season's books in memory: what rounds add to and take from its nodes' ledgers; pure.

`judge.services.standings` reads ledgers into a `Books`, books the rounds that enter or leave each
window, and writes back what changed. The cost of booking a round is the number of its scores.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from judge.ring import RING, Bits, slots
from swarm_tasks.marks import Cells, add_cells, subtract_cells

SEASON_WINDOW = "season"


@dataclass
class Tally:
    """What counts for a node in one window: cells by dataset, over so many rounds."""

    cells: Cells = field(default_factory=dict)
    rounds: int = 0


@dataclass
class Account:
    """One node's ledger; its bits stand in row `row` of the books."""

    node_id: int
    row: int
    model: str
    arm: str
    tallies: dict[str, Tally] = field(default_factory=dict)
    deviations: float = 0.0
    deviation_rounds: int = 0


@dataclass(frozen=True)
class Entry:
    """A node's score in one round, as far as the books need it; bits in the round's order."""

    node_id: int
    model: str
    arm: str
    cells: Cells
    answered: Bits
    solved: Bits
    deviation: float | None


class Books:
    """All ledgers of a season, with the rings of answers as (rows, RING) matrices."""

    def __init__(self, accounts: Iterable[Account], *, answered: Bits, solved: Bits) -> None:
        self.accounts = {account.node_id: account for account in accounts}
        self.answered, self.solved = answered, solved
        self.touched: set[int] = set()

    def open_accounts(self, entries: Iterable[Entry]) -> None:
        """Make room for nodes that have no ledger yet."""
        new = [entry for entry in entries if entry.node_id not in self.accounts]
        for row, entry in enumerate(new, start=len(self.answered)):
            self.accounts[entry.node_id] = Account(entry.node_id, row, entry.model, entry.arm)
        empty = np.zeros((len(new), RING), dtype=bool)
        self.answered = np.concatenate([self.answered, empty])
        self.solved = np.concatenate([self.solved, empty])

    def write_bits(self, entries: Iterable[Entry], *, start: int, count: int, end: int) -> None:
        """Write a round's answers into the rings, at the round's place in the stream up to `end`.

        What stood there is cleared: an earlier version of the round's scores. Questions from
        before the stream's last RING ones have no place any more.
        """
        kept = np.arange(start, start + count) >= end - RING
        at = slots(start, count)[kept]
        stale = set(np.flatnonzero(self.answered[:, at].any(axis=1)))
        self.touched |= {a.node_id for a in self.accounts.values() if a.row in stale}
        self.answered[:, at] = self.solved[:, at] = False
        for entry in entries:
            row = self.accounts[entry.node_id].row
            self.answered[row, at], self.solved[row, at] = entry.answered[kept], entry.solved[kept]
            self.touched.add(entry.node_id)

    def add(self, window: str, entries: Iterable[Entry]) -> None:
        """Count a round in a window."""
        for entry in entries:
            account = self.accounts[entry.node_id]
            tally = account.tallies.setdefault(window, Tally())
            tally.cells, tally.rounds = add_cells(tally.cells, entry.cells), tally.rounds + 1
            if window == SEASON_WINDOW and entry.deviation is not None:
                account.deviations += entry.deviation
                account.deviation_rounds += 1
            self.touched.add(entry.node_id)

    def subtract(self, window: str, entries: Iterable[Entry]) -> None:
        """Count a round in a window no more."""
        for entry in entries:
            account = self.accounts[entry.node_id]
            tally = account.tallies[window]
            tally.cells, tally.rounds = subtract_cells(tally.cells, entry.cells), tally.rounds - 1
            if tally.rounds == 0:
                del account.tallies[window]
            if window == SEASON_WINDOW and entry.deviation is not None:
                account.deviations -= entry.deviation
                account.deviation_rounds -= 1
            self.touched.add(entry.node_id)

    def rename(self, node_id: int, *, model: str, arm: str) -> None:
        """Note what a node was in the newest of its rounds."""
        account = self.accounts[node_id]
        account.model, account.arm = model, arm
        self.touched.add(node_id)

    def in_window(self, window: str) -> list[Account]:
        """Return the accounts that have something in a window, by node."""
        held = (account for account in self.accounts.values() if window in account.tallies)
        return sorted(held, key=lambda account: account.node_id)

    def rows(self, accounts: Iterable[Account]) -> npt.NDArray[np.int64]:
        """Return where in the matrices these accounts stand."""
        return np.array([account.row for account in accounts], dtype=np.int64)
